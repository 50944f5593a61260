"""From files and folders to checked definitions, with every problem of all of them."""

import json
from pathlib import Path

import pytest

from shoal.client.sdk.author_files import MAX_SCRIPT_BYTES
from shoal.client.sources.definitions import load_definitions
from shoal.client.sources.folders import MAX_BYTES
from shoal.core.checks.workflow import InvalidDefinition

TASK = "tasks: [{name: a, type: SHELL, params: {script: 'true'}}]\n"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, content: str | bytes) -> Path:
    """Write a file of the current folder."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def problems_of(*paths: str) -> list[str]:
    """What is wrong with the definitions in these files."""
    with pytest.raises(InvalidDefinition) as caught:
        load_definitions([Path(path) for path in paths])
    return [str(problem) for problem in caught.value.problems]


def names_in(*paths: str) -> list[str]:
    """The workflows in these files."""
    return [d.spec.name for d in load_definitions([Path(p) for p in paths]).definitions]


def test_all_problems_of_all_files_are_reported_with_file_and_line() -> None:
    write(
        "a.yaml",
        "name: bad name\nschedules:\n  - cron: every day\ntasks:\n"
        "  - {name: x, type: SHEL}\n  - name: y\n    type: SHELL\n    depends_on: [x, z]\n"
        "    retries: -1\n",
    )
    write("b.json", json.dumps({"name": "b", "tasks": [], "colour": 1}, indent=1))
    write("c.yaml", "name: c\n\ttasks: []\n")
    found = problems_of("a.yaml", "b.json", "c.yaml")
    for start in (
        "a.yaml:1: name: 'bad name' is not a valid name",
        "a.yaml:3: schedules[0]: cron expression",
        "a.yaml:5: tasks[0].type: unknown task type 'SHEL'",
        "a.yaml:8: tasks[1].depends_on[1]: task 'y' depends on 'z'",
        "a.yaml:9: tasks[1].retries: ",
        "a.yaml:6: tasks[1].params: give exactly one of script and file",
        "b.json:3: tasks: ",
        "b.json:4: colour: is not a known field",
        "c.yaml:2: is not YAML: the line is indented with a tab",
    ):
        assert any(line.startswith(start) for line in found), (start, found)


def test_a_cycle_is_named_task_by_task() -> None:
    write(
        "f.yaml",
        "name: f\ntasks:\n"
        "  - {name: a, type: SHELL, params: {script: x}, depends_on: c}\n"
        "  - {name: b, type: SHELL, params: {script: x}, depends_on: a}\n"
        "  - {name: c, type: SHELL, params: {script: x}, depends_on: b}\n",
    )
    assert problems_of("f.yaml") == [
        "f.yaml:3: tasks[0].depends_on: the tasks wait for each other in a cycle: a → b → c → a"
    ]


def test_several_documents_and_equal_names() -> None:
    write("f.yaml", f"name: one\n{TASK}---\nname: two\n{TASK}")
    write("g.yaml", f"name: two\nproject: other\n{TASK}")
    assert names_in("f.yaml", "g.yaml") == ["one", "two", "two"]
    write("g.yaml", f"# again\nname: two\n{TASK}")
    assert problems_of("f.yaml", "g.yaml") == [
        "g.yaml:2: name: workflow default/two is defined already at f.yaml:4"
    ]


def test_a_file_that_is_named_twice_is_read_once() -> None:
    write("d/f.yaml", f"name: one\n{TASK}")
    assert names_in("d", "d/f.yaml", "./d/../d/f.yaml") == ["one"]


def test_folders_are_searched_and_data_and_programs_left_alone() -> None:
    write("d/f.yaml", f"name: one\n{TASK}")
    write("d/sub/g.yml", f"name: two\n{TASK}")
    write("d/data.json", '{"rows": [1, 2]}')
    write("d/tasks.json", '{"task-list": "of another program"}')
    write("d/program.py", "raise SystemExit('must not run')")
    write("d/.hidden/h.yaml", "name: [")
    write("d/__pycache__/h.yaml", "name: [")
    loaded = load_definitions([Path("d")])
    assert [d.spec.name for d in loaded.definitions] == ["one", "two"]
    assert sorted(map(str, loaded.skipped)) == ["d/data.json", "d/tasks.json"]


def test_a_misspelt_key_in_a_folder_is_no_reason_to_pass_a_file_over() -> None:
    write("d/f.yaml", "name: one\ntask: []\n")
    assert "d/f.yaml:1: tasks: is required" in problems_of("d")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("f.yaml", "", "f.yaml:1: is empty"),
        ("f.yaml", "# nothing\n", "f.yaml:1: holds no workflow definition"),
        ("f.yaml", "- a\n- b\n", "f.yaml:1: a workflow is a mapping with name and tasks"),
        (
            "f.yaml",
            b"name: a\nx: \xff\xfe\n",
            "f.yaml:2: is not UTF-8 text: byte 0xff at offset 11",
        ),
        ("f.yaml", b"\x7fELF\0\0", "f.yaml:1: is not text: it has the control character U+007F"),
        ("f.yaml", b"a: 1\n#" + b"x" * MAX_BYTES, "f.yaml:1: is larger than 16 MiB"),
        ("f.txt", "name: x", "f.txt:1: .txt is not a kind of definition: .json, .py, .yaml, .yml"),
        ("f.py", "x = (\n", "f.py:1: is not Python: '(' was never closed"),
        ("f.py", "x = 1\n", "f.py:1: has no Workflow in a variable of the module"),
        ("f.py", "x = 1\ny = x / 0\n", "f.py:2: ZeroDivisionError: division by zero"),
        ("f.py", "\nraise SystemExit(3)\n", "f.py:2: ends the program (SystemExit: 3)"),
        ("f.py", "import no_such_module\n", "f.py:1: ModuleNotFoundError: "),
    ],
)
def test_unusable_files(name: str, content: str | bytes, problem: str) -> None:
    write(name, content)
    (found,) = problems_of(name)
    assert found.startswith(problem)


def test_missing_and_unreadable_files() -> None:
    Path("empty").mkdir()
    Path("loop.yaml").symlink_to("loop.yaml")
    Path("folder.yaml").mkdir()
    found = problems_of("nowhere.yaml", "empty", "loop.yaml", "folder.yaml")
    assert found == [
        "nowhere.yaml:1: there is no such file or folder",
        "empty:1: the folder holds no .json, .py, .yaml, .yml file",
        "loop.yaml:1: there is no such file or folder",
        "folder.yaml:1: the folder holds no .json, .py, .yaml, .yml file",
    ]


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm() -> None:
    write("f.yaml", b"\xef\xbb\xbfname: one\r\n" + TASK.encode())
    assert names_in("f.yaml") == ["one"]


def test_script_file_and_directory_are_those_of_the_definition() -> None:
    write("sub/run.sh", "echo ü\n")
    write(
        "sub/f.yaml",
        "name: f\nparameters: {out: '${file.directory}/out', raw: '$${file.directory}'}\n"
        "tasks: [{name: a, type: SHELL, params: {script_file: run.sh}}]\n",
    )
    (definition,) = load_definitions([Path("sub/f.yaml")]).definitions
    spec = definition.spec
    assert spec.tasks[0].params == {"script": "echo ü\n"}
    assert spec.parameters["out"].default == f"{Path('sub').absolute()}/out"
    assert spec.parameters["raw"].default == "$${file.directory}"


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ("script_file: nope.sh", "there is no file "),
        ("script_file: big.sh", "is larger than 1 MiB"),
        ("script_file: binary.sh", "is not UTF-8 text: line 2"),
        ("script_file: d", "cannot be read: Is a directory"),
        ("script_file: 3", "must be the name of a file"),
        ("script_file: ok.sh, script: x", "give script or script_file, not both"),
    ],
)
def test_unusable_script_files(params: str, problem: str) -> None:
    write("ok.sh", "true")
    write("big.sh", b"#" * (MAX_SCRIPT_BYTES + 1))
    write("binary.sh", b"a\n\xff")
    Path("d").mkdir()
    write("f.yaml", "name: f\ntasks:\n- name: a\n  type: SHELL\n  params: {" + params + "}\n")
    (found,) = problems_of("f.yaml")
    assert found.startswith("f.yaml:5: tasks[0].params.script_file: ")
    assert problem in found


def test_programs_that_ask_a_cluster_are_not_run_to_read_a_folder() -> None:
    write("d/ask.py", "from shoal.client import ShoalClient, load_definitions\nraise SystemExit\n")
    write(
        "d/w.py",
        "from shoal.client import *\nwith Workflow('w') as w:\n    Shell('a', script='x')\n",
    )
    (definition,) = load_definitions([Path("d")]).definitions
    assert definition.spec.name == "w"
    (found,) = problems_of("d/ask.py")  # named, it is read
    assert "ask.py" in found


def test_sql_may_stand_in_a_file() -> None:
    write("q.sql", "SELECT 1;\n")
    start = "name: f\ntasks:\n- name: a\n  type: SQL\n  params: {data_source: w, sql_file: q.sql"
    write("f.yaml", start + "}\n")
    (definition,) = load_definitions([Path("f.yaml")]).definitions
    assert definition.spec.tasks[0].params == {"data_source": "w", "sql": "SELECT 1;\n"}
    write("f.yaml", start + ", sql: SELECT 2}\n")
    (found,) = problems_of("f.yaml")
    assert "give sql or sql_file, not both" in found


def test_a_folder_whose_name_looks_like_a_placeholder_is_refused() -> None:
    write("${x}/f.yaml", "name: f\nparameters: {d: '${file.directory}'}\n" + TASK)
    (found,) = problems_of("${x}/f.yaml")
    assert "cannot be used in a text" in found


def test_python_definitions_know_the_line_of_every_call() -> None:
    write("helper.py", "NAME = 'from-helper'\n")
    write(
        "f.py",
        "from helper import NAME\n"
        "from shoal.client import Shell, Workflow\n"
        "print('loading')\n"
        "with Workflow(NAME) as one:\n"
        "    a = Shell('a', script='true', retries=-1)\n"
        "    b = Shell('b', script='true')\n"
        "    a >> b\n"
        "    b >> a\n"
        "two = Workflow('two', schedules=['nonsense'])\n",
    )
    found = problems_of("f.py")
    for start in (
        "f.py:5: tasks[0].retries: ",
        "f.py:8: tasks[0].depends_on: the tasks wait for each other in a cycle",
        "f.py:9: schedules[0]: cron expression",
        "f.py:9: tasks: ",
    ):
        assert any(line.startswith(start) for line in found), (start, found)


def test_equally_named_helpers_of_two_folders_are_not_mixed_up() -> None:
    text = "from names import NAME\nfrom shoal.client import Shell, Workflow\n"
    text += "with Workflow(NAME) as w:\n    Shell('a', script='true')\n"
    for folder in ("one", "two"):
        write(f"{folder}/names.py", f"NAME = {folder!r}\n")
        write(f"{folder}/f.py", text)
    assert names_in("one", "two") == ["one", "two"]


def test_output_of_python_definitions_stays_off_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("f.py", "from shoal.client import *\nprint('hello')\nwith Workflow('w') as w:\n"
          "    Shell('a', script='true')\n")  # fmt: skip
    assert names_in("f.py") == ["w"]
    assert capsys.readouterr() == ("", "hello\n")


def test_an_error_of_the_sdk_is_told_with_the_line_that_made_it() -> None:
    write(
        "f.py",
        "from shoal.client import Shell, Workflow\n"
        "def part(n):\n"
        "    return Shell('same', script='true')\n"
        "with Workflow('w') as w:\n"
        "    part(1)\n"
        "    part(2)\n",
    )
    (found,) = problems_of("f.py")
    assert found.startswith("f.py:3: workflow 'w' has a task 'same' already, made at ")
