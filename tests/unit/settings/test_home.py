from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path

import pytest

from council.errors import ConfigError, HomeNotFound
from council.settings import Home, Settings, builtin_personas_dir, council_toml_template, find_home, init_home

REPOSITORY = Path(__file__).parents[3]
FOLDERS = ("commands", "artifacts", "personas", "session_states")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("commands", "personas"):
        (tmp_path / "home" / name).mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def personas(tmp_path: Path) -> Path:
    folder = tmp_path / "builtin"
    folder.mkdir()
    (folder / "auditor.md").write_text("the builtin auditor")
    (folder / "README.md").write_text("not a persona")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_whatever_a_new_home_links_lies_in_it(tmp_path: Path) -> None:
    init_home(tmp_path / "new", personas_from=builtin_personas_dir())
    pages = list((tmp_path / "new").rglob("*.md"))
    linked = [page.parent / to for page in pages for to in re.findall(r"\]\(([^)#:]+)\)", page.read_text())]
    assert [path for path in linked if not path.exists()] == []


def test_the_nearest_home_above_the_working_folder_is_found(home: Path) -> None:
    nested = home / "docs" / "deep"
    nested.mkdir(parents=True)
    assert find_home(None, {}, nested) == Home(home)


def test_a_home_inside_a_home_wins_from_within(home: Path) -> None:
    for name in ("commands", "personas", "docs"):
        (home / "inner" / name).mkdir(parents=True)
    assert find_home(None, {}, home / "inner" / "docs").root == home / "inner"


def test_the_flag_wins_over_the_variable_and_the_variable_over_the_working_folder(home: Path, tmp_path: Path) -> None:
    for name in ("one/commands", "one/personas", "two/commands", "two/personas"):
        (tmp_path / name).mkdir(parents=True)
    environ = {"COUNCIL_HOME": str(tmp_path / "one")}
    assert find_home(None, environ, home).root == tmp_path / "one"
    assert find_home(tmp_path / "two", environ, home).root == tmp_path / "two"


def test_an_empty_variable_names_no_home(home: Path) -> None:
    assert find_home(None, {"COUNCIL_HOME": ""}, home).root == home


def test_a_relative_flag_counts_from_the_given_working_folder(home: Path, tmp_path: Path) -> None:
    assert find_home(Path("home"), {}, tmp_path).root == home


@pytest.mark.parametrize("origin", ["--home", "COUNCIL_HOME"])
def test_a_given_folder_that_is_no_home_is_named_with_the_way_to_make_it_one(tmp_path: Path, origin: str) -> None:
    folder = tmp_path / "my notes"
    (folder / "commands").mkdir(parents=True)
    flag, environ = (folder, {}) if origin == "--home" else (None, {"COUNCIL_HOME": str(folder)})
    with pytest.raises(HomeNotFound) as caught:
        find_home(flag, environ, tmp_path)
    assert caught.value.message == f"{folder} ({origin}) is not a home: it lacks personas/."
    assert caught.value.fix == f"`council init '{folder}'` makes it one."


def test_a_given_folder_that_does_not_exist_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(HomeNotFound, match="is not a folder"):
        find_home(tmp_path / "absent", {}, tmp_path)


def test_a_file_is_no_home_and_nothing_is_said_to_make_it_one(tmp_path: Path) -> None:
    file, lacking = tmp_path / "notes", tmp_path / "home"
    file.touch()
    lacking.mkdir()
    (lacking / "commands").touch()
    with pytest.raises(HomeNotFound, match="is not a folder") as caught:
        find_home(file, {}, tmp_path)
    assert caught.value.fix == "name a folder."
    for place in (file, lacking):
        with pytest.raises(ConfigError, match="cannot make a home") as refused:
            init_home(place, personas_from=builtin_personas_dir())
        assert "move away the file" in refused.value.fix


def test_without_any_home_the_error_names_the_folder_searched_from_and_init(tmp_path: Path) -> None:
    with pytest.raises(HomeNotFound) as caught:
        find_home(None, {}, tmp_path)
    assert str(tmp_path) in caught.value.message
    assert "council init DIR" in caught.value.fix


def test_every_place_lies_inside_the_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert [
        str(place.relative_to(tmp_path))
        for place in (
            home.commands,
            home.failed,
            home.artifacts,
            home.personas,
            home.session_states,
            home.runtime,
            home.lock_file,
            home.state_file,
        )
    ] == [
        "commands",
        "commands/failed",
        "artifacts",
        "personas",
        "session_states",
        ".council",
        ".council/lock",
        ".council/state.json",
    ]


def test_the_runtime_folder_is_for_its_owner_only_even_when_it_was_open(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.runtime.mkdir()
    home.runtime.chmod(0o755)
    home.ensure_runtime()
    home.ensure_runtime()
    assert stat.S_IMODE(home.runtime.stat().st_mode) == 0o700


def test_init_makes_a_home_that_is_found(tmp_path: Path, personas: Path) -> None:
    target = tmp_path / "new" / "home"
    created = init_home(target, personas_from=personas)
    assert find_home(target, {}, tmp_path).root == target
    assert sorted(contents(target)) == sorted(
        [".gitignore", "council.toml", "personas/auditor.md", *(f"{name}/README.md" for name in FOLDERS)]
    )
    assert {path for path in created if path.is_file()} == {target / name for name in contents(target)}
    assert {path.name for path in created if path.is_dir()} == set(FOLDERS)


def test_init_again_creates_and_changes_nothing(tmp_path: Path, personas: Path) -> None:
    init_home(tmp_path / "home", personas_from=personas)
    before = contents(tmp_path / "home")
    assert init_home(tmp_path / "home", personas_from=personas) == []
    assert contents(tmp_path / "home") == before


def test_init_overwrites_nothing_that_a_person_wrote(tmp_path: Path, personas: Path) -> None:
    home = tmp_path / "home"
    mine = ("personas/auditor.md", "personas/README.md", "council.toml", "commands/README.md")
    for name in mine:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("mine")
    init_home(home, personas_from=personas)
    assert {(home / name).read_text() for name in mine} == {"mine"}


def test_init_appends_only_the_missing_lines_to_gitignore(tmp_path: Path, personas: Path) -> None:
    (tmp_path / ".gitignore").write_text("node_modules/\n.env")
    assert tmp_path / ".gitignore" in init_home(tmp_path, personas_from=personas)
    assert (tmp_path / ".gitignore").read_text() == "node_modules/\n.env\n.council/\nsession_states/*.json\n"


def test_init_where_a_file_is_in_the_way_is_a_config_error_that_names_it(tmp_path: Path, personas: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=str(tmp_path / "file")):
        init_home(tmp_path / "file", personas_from=personas)


def test_the_written_council_toml_changes_nothing_until_a_line_is_uncommented() -> None:
    assert tomllib.loads(council_toml_template()) == {}


def test_every_setting_in_the_written_council_toml_is_valid_once_uncommented() -> None:
    lines = council_toml_template().splitlines()
    uncommented = [line.removeprefix("# ") for line in lines if line.partition(" = ")[0][2:] in Settings.model_fields]
    values = tomllib.loads("\n".join(uncommented))
    assert list(values) == list(Settings.model_fields)
    without_default = {key for key, field in Settings.model_fields.items() if field.examples}
    loaded, default = Settings(**values).model_dump(), Settings().model_dump()
    assert {key for key in values if loaded[key] != default[key]} == without_default


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_readme_of_the_repositorys_own_folder_is_the_one_that_init_writes(folder: str) -> None:
    resource = REPOSITORY / "council" / "resources" / "home" / folder / "README.md"
    assert (REPOSITORY / folder / "README.md").read_bytes() == resource.read_bytes()


def test_the_builtin_personas_of_a_checkout_lie_beside_the_package() -> None:
    assert builtin_personas_dir() == REPOSITORY / "personas"
