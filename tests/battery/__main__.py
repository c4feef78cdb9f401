"""How much of the battery is answered, and what each text became.

    python -m tests.battery [WORLD ...] [--write]

With --write the outcomes in the files are brought up to date: texts that are refused become `not yet` where they were
`answered`, and `answered` where the answer is DuckDB's.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from privacy.refusal import Refused
from tests.battery.outcomes import difference
from tests.battery.questions import files
from tests.battery.worlds import WORLDS, open_world
from tests.plain_clinic import Clinic


def outcome(world: Clinic, text: str, before: str) -> str:
    """The header of a text: as it is, where it says what was decided; else what it became."""
    try:
        differs = difference(world, text)
    except Refused as refused:
        code = refused.findings[0].code
        return f"-- refused: {code}" if before.startswith("-- refused") else f"-- not yet: {code}"
    except Exception as error:
        return f"-- FAILED: {type(error).__name__} {str(error)[:150]}"
    if not differs:
        return "-- answered"
    return before if before.startswith("-- other") else f"-- DIFFERS: {differs[:200]}"


def main() -> None:
    """Prints the share of each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for name in options.worlds:
        counts: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as folder, open_world(name, Path(folder)) as world:
            for path in files(name):
                written = []
                for part in path.read_text(encoding="utf-8").strip().split("\n\n"):
                    before, _, text = part.partition("\n") if part.startswith("-- ") else ("", "", part)
                    header = outcome(world, text, before)
                    counts[header.removeprefix("-- ").partition(":")[0]] += 1
                    if header != before:
                        print(f"{name}: {header}\n    {' '.join(text.split())[:200]}")
                    written.append(f"{header}\n{text}")
                if options.write:
                    path.write_text("\n\n".join(written) + "\n", encoding="utf-8")
        asked = counts["answered"] + counts["other"] + counts["not yet"]
        print(name, dict(counts), f"{(counts['answered'] + counts['other']) / asked:.1%} of {asked}")


if __name__ == "__main__":
    main()
