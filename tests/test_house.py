"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from statistics import median, quantiles

import pytest

from tandemq.commands.all import COMMANDS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tandemq"
TESTS = ROOT / "tests"

LINES_PER_MODULE = 400
LINES_PER_FUNCTION = 60
LINES_OF_NINE_IN_TEN = 30
LINES_OF_THE_MEDIAN = 8

# Folders of tests that follow a promise instead of a module.
ACROSS = {
    "broker", "chaos", "contract", "corpus", "crash", "docs", "histories", "hostile", "interop",
    "pains", "soak", "support", "ui",
}  # fmt: skip
# The floors whose modules each have a test module of their own.
MIRRORED = ("model", "engine", "wires")
# Names that say nothing about what a class does.
EMPTY_NAMES = re.compile(r"(Manager|Helper|Util|Utils|Handler|Context|Factory)$")
# Public names that the second founding document gives (ruling 25), and the one that tasks ask for.
GIVEN_NAMES = {"QueueManager", "Context"}
# Reminders are for the tracker: one in the source names its issue.
REMINDER = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b(?!\(#\d+\))")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*.py") if "node_modules" not in p.parts)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def each(root: Path) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("module", modules(root), ids=name)


def is_code(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def code_lines(function: Function, lines: list[str]) -> int:
    """Count the lines of a function without docstring, comments and blank lines."""
    body = function.body
    documented = ast.get_docstring(function, clean=False) is not None
    skipped = (body[0].lineno, body[0].end_lineno or 0) if documented else (0, 0)
    numbers = range(function.lineno, (function.end_lineno or 0) + 1)
    return sum(is_code(lines[n - 1]) for n in numbers if not skipped[0] <= n <= skipped[1])


def functions(module: Path) -> list[tuple[str, int]]:
    text = module.read_text()
    lines = text.splitlines()
    return [
        (f"{name(module)}:{node.lineno} {node.name}", code_lines(node, lines))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, Function)
    ]


@each(SOURCE)
def test_a_module_says_what_it_is_for(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text())), "no module docstring"


@each(TESTS)
def test_a_test_module_says_what_it_is_for(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text())), "no module docstring"


@each(SOURCE)
def test_a_module_fits_on_a_few_screens(module: Path) -> None:
    lines = len(module.read_text().splitlines())
    assert lines <= LINES_PER_MODULE, f"{lines} lines: split it by topic"


@each(SOURCE)
def test_annotations_are_never_evaluated(module: Path) -> None:
    tree = ast.parse(module.read_text())
    future = "annotations" in {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for alias in node.names
    }
    assert future or len(tree.body) == 1, "from __future__ import annotations is missing"


@each(SOURCE)
def test_a_function_fits_on_one_screen(module: Path) -> None:
    long = [f"{place}: {count}" for place, count in functions(module) if count > LINES_PER_FUNCTION]
    assert not long, f"more than {LINES_PER_FUNCTION} lines of code: {long}"


def test_most_functions_are_short() -> None:
    counts = [count for module in modules(SOURCE) for _, count in functions(module)]
    assert median(counts) <= LINES_OF_THE_MEDIAN
    assert quantiles(counts, n=10)[-1] <= LINES_OF_NINE_IN_TEN


@each(SOURCE)
def test_a_class_is_named_for_what_it_is(module: Path) -> None:
    empty = [
        node.name
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.ClassDef)
        and EMPTY_NAMES.search(node.name)
        and node.name not in GIVEN_NAMES
    ]
    assert not empty, f"names that say nothing: {empty}"


@pytest.mark.parametrize("module", modules(SOURCE) + modules(TESTS), ids=name)
def test_a_reminder_names_its_issue(module: Path) -> None:
    found = [
        f"{number}: {line.strip()}"
        for number, line in enumerate(module.read_text().splitlines(), 1)
        if REMINDER.search(line)
    ]
    assert not found, f"write it as a word in capitals and (#issue), or solve it: {found}"


def mirrors(test: Path) -> bool:
    """Whether a test module stands where its subject stands, and starts with its name.

    ``tests/engine/test_settle.py`` and ``tests/engine/test_settle_late.py`` are both about
    ``engine/settle.py``; a package may stand for its modules. ``test_contract.py`` is about every
    module of its folder.
    """
    place = test.relative_to(TESTS)
    folder = SOURCE / place.parent
    words = place.stem.removeprefix("test_").split("_")
    if words == ["contract"]:
        return folder.is_dir()
    subjects = {"_".join(words[:n]) for n in range(1, len(words) + 1)}
    return any(
        (folder / f"{subject}.py").is_file() or (folder / subject).is_dir() for subject in subjects
    )


@pytest.mark.parametrize(
    "test",
    [
        test
        for test in modules(TESTS)
        if test.name.startswith("test_")
        and test != Path(__file__)
        and test.relative_to(TESTS).parts[0] not in ACROSS
    ],
    ids=name,
)
def test_a_test_module_mirrors_what_it_tests(test: Path) -> None:
    assert mirrors(test), "no module of that name at that place under src/tandemq"


@pytest.mark.parametrize(
    "module",
    [
        module
        for floor in MIRRORED
        for module in modules(SOURCE / floor)
        if module.name != "__init__.py"
    ],
    ids=name,
)
def test_a_module_of_the_core_has_its_own_tests(module: Path) -> None:
    folder = TESTS / module.relative_to(SOURCE).parent
    own = [*folder.glob(f"test_{module.stem}.py"), *folder.glob(f"test_{module.stem}_*.py")]
    assert own, f"no test_{module.stem}.py in {name(folder)}"


def test_the_changelog_has_a_section_for_this_version() -> None:
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    version = re.search(r'__version__ = "(.+)"', (SOURCE / "__init__.py").read_text())
    assert version is not None
    assert "Unreleased" in sections or any(s.startswith(version[1]) for s in sections)


def test_parts_of_a_release_stand_in_the_agreed_order() -> None:
    order = ["Removed", "Deprecated", "Added", "Changed", "Fixed", "Compatibility"]
    for release in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]:
        parts = re.findall(r"^### (.+)$", release, re.MULTILINE)
        assert parts == sorted(parts, key=order.index)


def test_every_decision_has_its_three_parts() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{n:04}" for n in range(1, len(pages) + 1)]
    for page in pages:
        parts = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
        assert {"Context", "Choice", "Price"} <= set(parts), page.name


def test_the_protocol_page_has_every_command() -> None:
    page = (ROOT / "docs" / "protocol" / "bunqueue.md").read_text()
    rows = re.findall(r"^\| ([A-Z][^|]*)\|", page, re.MULTILINE)
    named = {word for cell in rows for word in re.findall(r"\w+", cell)}
    assert COMMANDS.keys() <= named, sorted(COMMANDS.keys() - named)


def test_what_the_page_of_the_seeds_calls_done_exists() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs" / "seeds.md").read_text().splitlines()
        if re.match(r"\| \d", line)
    ]
    assert rows
    missing = [
        f"row {number}: {path}"
        for number, _, place, test, when in rows
        if when == "now"
        for cell, root in ((place, SOURCE), (test, TESTS))
        for path in re.findall(r"`([\w/]+\.py)`", cell)
        if not (root / path).exists()
    ]
    assert not missing, missing
