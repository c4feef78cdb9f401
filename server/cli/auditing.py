"""`noisegate ledger export` and `noisegate verify`: the ledger as a file, and its check without trusting the server."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from server.cli.failure import CommandFailed, UsageError
from server.cli.options import Here, absolute, option
from server.cli.output import CHECKOUT

__all__ = ["export_ledger", "verify"]


def export_ledger(
    *, file: Path = option("FILE", "Where to write it. A file that is there already is not replaced."), here: Here
) -> None:
    """Write the whole ledger to a file that others can check."""
    from accountant.entry import to_micros
    from accountant.ledger import utc_now

    path = absolute(file)
    last = b""
    with here.place().read() as ledger:
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
                for last in ledger.export(now=to_micros(utc_now())):
                    target.write(last)
        except FileExistsError:
            raise UsageError(f"""there is a file "{file}" already
                An earlier export proves that nothing was rewritten since: it is worth keeping.
                Choose another name.""") from None
        except OSError as error:
            raise CommandFailed(f"""could not write "{file}"
                {type(error).__name__}: the folder is missing, full, or not yours.
                Choose another place.""") from None
    from json import loads

    end = loads(last)
    counts = {name: end["counts"].get(name, 0) for name in ("entry", "account", "query", "release")}
    body = {"file": str(path), **counts, "head": {"sequence": end["sequence"], "hash": end["hash"]}}
    lines = [
        f"Wrote {counts['entry']:,} entries of {counts['account']:,} accounts to {path}.",
        f"Head, to be noted elsewhere: {end['sequence']}:{end['hash']}",
        "Check it here or on any machine with Python:",
        f"  noisegate verify {file}",
        f"  python3 verify.py {file}        (clients/verify.py of the repository: one file, nothing else)",
    ]
    here.show(body, lines)


def verify(
    *,
    file: Path = option("FILE", "An export of a ledger."),
    earlier: Path | None = option("--earlier FILE", "An earlier export of the same ledger: nothing in it may differ."),
    head: str | None = option("--head SEQUENCE:HASH", "A head that was noted earlier."),
    here: Here,
) -> None:
    """Compute everything in an export anew, and say what one person can lose at worst."""
    program = _program()
    try:
        heads = program.heads_of([earlier] if earlier else [], [head] if head else [])
        found = program.verify(file, heads)
    except OSError as error:
        raise CommandFailed(f"""could not read the export
            {type(error).__name__}: {error.filename}.
            Make one with: noisegate ledger export FILE""") from None
    except program.NotAnExport as error:
        raise CommandFailed(f"""this is no export of a ledger
            {error}.
            Make one with: noisegate ledger export FILE""") from None
    except ValueError as error:
        raise CommandFailed(f"""could not compare with what was noted earlier
            {error}.
            Give the last line of an earlier output as --head, or an earlier export as --earlier.""") from None
    here.show(found.report(), found.words(), verbatim=True, failed=bool(found.findings))


def _program() -> ModuleType:
    """The auditor's own file, from the checkout or from where a package puts it: it is no part of this program."""
    for folder in (CHECKOUT / "clients", Path(sys.prefix) / "share" / "noisegate"):
        path = folder / "verify.py"
        if path.is_file():
            found = importlib.util.spec_from_file_location("noisegate_verify", path)
            assert found is not None
            assert found.loader is not None
            program = importlib.util.module_from_spec(found)
            sys.modules[found.name] = program
            found.loader.exec_module(program)
            return program
    raise CommandFailed("""the program that checks exports is missing
        It is clients/verify.py of the repository, and this installation does not have it.
        Copy it from there and run: python3 verify.py FILE""")
