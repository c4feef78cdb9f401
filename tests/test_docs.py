"""Documentation that can be checked is checked: links, codes, settings of words, and that nothing is promised twice."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from mechanisms.families import MEASUREMENTS
from privacy.refusal import CODES
from privacy.warning import WARNINGS
from server.installed import program_version
from server.matrix import sql_matrix
from sql_rewrite.functions import INTERNAL, REGISTRY

CHECKOUT = Path(__file__).resolve().parents[1]
PAGES = sorted([CHECKOUT / "README.md", *CHECKOUT.glob("docs/**/*.md"), *CHECKOUT.glob("*/README.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Shows that every relative link of a page names a file of the checkout."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []


def test_every_refusal_code_has_its_line() -> None:
    """Shows that docs/sql.md lists each code with the meaning that the code has."""
    text = (CHECKOUT / "docs" / "sql.md").read_text()
    missing = [code for code, meaning in CODES.items() if f"| `{code}` | {meaning} |" not in text]
    assert missing == []


def test_every_warning_code_has_its_line() -> None:
    """Shows that docs/sql.md lists each code of a warning with the meaning that the code has."""
    text = (CHECKOUT / "docs" / "sql.md").read_text()
    missing = [code for code, meaning in WARNINGS.items() if f"| `{code}` | {meaning} |" not in text]
    assert missing == []


def test_every_function_is_documented_and_announced() -> None:
    """Shows that each operator of the allow-list stands in docs/functions.md and in the capabilities."""
    text = (CHECKOUT / "docs" / "functions.md").read_text()
    announced = set(sql_matrix()["functions"])
    for name, operator in REGISTRY.items():
        if name not in INTERNAL:
            assert operator.forms.split("`")[0][:12] in text or name in text, name
            assert name in announced


def test_every_mechanism_has_a_proof_page() -> None:
    """Shows that each measurement has its page beside the code, with a statement and what is not covered."""
    assert MEASUREMENTS
    for name in MEASUREMENTS:
        page = CHECKOUT / "mechanisms" / f"{name.replace('-', '_').replace(' ', '_')}.md"
        assert page.is_file(), page
        assert "not covered" in page.read_text().lower()


def test_the_readme_names_the_two_commands() -> None:
    """Shows that the first thing a newcomer reads are the two commands."""
    text = (CHECKOUT / "README.md").read_text()
    assert text.index("./noisegate up") < text.index("./noisegate test") < text.index("## Your own data")


def test_figures_of_accuracy_are_those_of_their_page() -> None:
    """Shows that README and the page on norms repeat the figures of docs/accuracy.md."""
    page = (CHECKOUT / "docs" / "accuracy.md").read_text()
    pattern = r"^\| ([a-zA-Z, ]+?) \| [0-9,]+: ([0-9.]+) \| [0-9.]+ \| ([0-9.]+), ([0-9.]+), "
    found = {name: figures for name, *figures in re.findall(pattern, page, re.MULTILINE)}
    months, both, departments, whole, zipf = found.values()
    own = " ".join((CHECKOUT / "mechanisms" / "norm_choice.md").read_text().split())
    assert (
        f"visits by month {months[0]}, by month and department {both[0]}, by department {departments[0]}, "
        f"in all {whole[0]}; a SUM over units that follow Zipf's law {zipf[0]}." in own
    )
    ratio, nothing, declared = map(float, months)
    readme = " ".join((CHECKOUT / "README.md").read_text().split())
    assert f"visits by month have {ratio:.1f} times the error" in readme
    assert f"has {nothing:.0f} times that error, and {declared:.0f} times with counts that somebody declared" in readme


def test_decisions_have_numbers_of_their_own() -> None:
    """Shows that decisions count 0001, 0002, ... and that a superseded one names its successor in its first lines."""
    pages = sorted((CHECKOUT / "docs" / "decisions").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for page in pages:
        for old in re.findall(r"^Supersedes \[\d{4}\]\(([^)]+)\)", page.read_text(), re.MULTILINE):
            head = "\n".join((page.parent / old).read_text().splitlines()[:4])
            assert f"Superseded by [{page.name[:4]}]({page.name})" in head, old


def test_fragments_are_named_alike() -> None:
    """Shows that each fragment of the changelog says issue, topic and one of the kinds in its name."""
    kinds = "feature|change|fix|privacy|removal"
    names = [path.name for path in (CHECKOUT / "changelog.d").iterdir() if path.name != "README.md"]
    assert [name for name in names if not re.fullmatch(rf"[1-9][0-9]*\.[a-z-]+\.({kinds})\.md", name)] == []


def test_data_of_an_older_server_is_not_left_without_its_remedy() -> None:
    """Shows that the known limit of data from 0.1.0 names both of its causes, and the commands that mend it."""
    page = (CHECKOUT / "docs" / "KNOWN_LIMITS.md").read_text("utf-8")
    (paragraph,) = re.findall(r"^- \*\*Older snapshots\.\*\*(?:.*\n)(?:  .*\n)*", page, re.MULTILINE)
    words = ("`rows_stored_per_unit`", "`length_max`", "`other`", "`noisegate dataset upgrade FILE`")
    assert [word for word in (*words, "`noisegate dataset add FILE`") if word not in paragraph] == []


def test_every_observable_names_its_tests() -> None:
    """Shows that each row of the threat model's table has a bound and names test files that exist."""
    text = (CHECKOUT / "docs" / "threat-model.md").read_text()
    (table,) = re.findall(r"^\| observable \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [line.strip("|").split(" | ") for line in table.splitlines()]
    assert {len(row) for row in rows} == {3}
    for observable, bound, tests in rows:
        assert observable.strip(), "a row names what can be observed"
        assert bound.strip(), observable
        paths = re.findall(r"`(tests/[^`]+)`", tests)
        assert paths, observable
        assert [path for path in paths if not (CHECKOUT / path).is_file()] == [], observable
    words = " ".join(row[0] for row in rows)
    wanted = ("status", "size", "time", "queue", "memory", "failures", "logs", "metrics", "ledger", "readiness")
    assert [word for word in wanted if word not in words] == []


def test_the_version_is_one() -> None:
    """Shows that the package, the server, its description, the image and the changelog say the same version."""
    with (CHECKOUT / "pyproject.toml").open("rb") as stream:
        version = tomllib.load(stream)["project"]["version"]
    assert program_version() == version
    assert json.loads((CHECKOUT / "docs" / "openapi.json").read_text("utf-8"))["info"]["version"] == version
    assert f"image: noisegate:{version}\n" in (CHECKOUT / "docker-compose.yml").read_text("utf-8")
    assert f"\n## {version}\n" in (CHECKOUT / "CHANGELOG.md").read_text("utf-8")
