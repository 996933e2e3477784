"""Programs in other languages, compiled and run in the sandbox."""

from pathlib import Path

import pytest

import evo
from evo.sandbox import compiled
from evo.sandbox.compiled import ProgramFailed, build, find_tool
from evo.tasks.task import TaskError

PROGRAMS = {
    "c": '#include <stdio.h>\nint main(void) { int k; scanf("%d", &k); printf("%d\\n", 2 * k); }\n',
    "cpp": "#include <iostream>\nint main() { int k; std::cin >> k; std::cout << 2 * k; }\n",
    "rust": "use std::io;\nfn main() { let mut s = String::new(); io::stdin().read_line(&mut s)"
    '.unwrap(); println!("{}", 2 * s.trim().parse::<i32>().unwrap()); }\n',
    "go": 'package main\nimport "fmt"\nfunc main() { var k int; fmt.Scan(&k); fmt.Println(2*k) }\n',
    "julia": "println(2 * parse(Int, readline()))\n",
    "javascript": 'console.log(2 * JSON.parse(require("fs").readFileSync(0)))\n',
    "r": 'cat(2 * as.integer(readLines(file("stdin"))))\n',
    "lua": 'print(2 * io.read("n"))\n',
    "bash": "read k\necho $((2 * k))\n",
}
"""Each prints twice the number that it reads."""

needs_c = pytest.mark.skipif(find_tool("c") is None, reason="apt-get install gcc libc6-dev")


def tenth(value, row):
    return value / 10


def itself(value):
    return value


def task_of(language: str, text: str, **more) -> evo.Task:
    return evo.task("other", initial_program=text, language=language, statement="x", **more)


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_reads_its_input_and_its_output_is_scored(language: str) -> None:
    if find_tool(language) is None:
        pytest.skip(f"no compiler of {language}")
    rows = [{"input": 2}, {"input": 3}]
    task = task_of(language, PROGRAMS[language], evaluate=tenth, instances=rows)
    found = task.evaluate()
    assert [each.score for each in found.instances] == [0.4, 0.6], found


@pytest.mark.skipif(find_tool("sql") is None, reason="apt-get install sqlite3")
def test_a_query_is_a_program_too() -> None:
    assert task_of("sql", "select 0.25;\n", evaluate=itself).evaluate().fitness == 0.25


@needs_c
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("return 0", "error", "the program does not compile: program.c:"),
        ("return *(volatile int *)0;", "error", "the program was ended by signal 11"),
        ("return 3;", "error", "the program ended with exit code 3"),
        ("for (;;) {}", "timeout", "processor time"),
        ('puts("no number");', "error", "the evaluator failed"),
    ],
)
def test_a_failure_is_a_status_in_words(body: str, status: str, words: str) -> None:
    text = f"#include <stdio.h>\nint main(void) {{ {body} }}\n"
    found = task_of("c", text, evaluate=lambda_free, limits={"seconds": 1}).evaluate()
    assert (found.status, found.fitness) == (status, None)
    assert words in (found.error or "") or status == "timeout"
    assert "/evo/" not in (found.error or "")
    assert ("expected" in found.notes) == ("compile" in words)


def lambda_free(value):
    return value + 0.5


@needs_c
def test_a_program_is_jailed_as_one_in_python_is(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("1")
    text = f"""#include <stdio.h>
#include <stdlib.h>
int main(void) {{
    FILE *secret = fopen("{secret}", "r");
    void *much = malloc(3000000000u);
    FILE *own = fopen("/etc/evo-was-here", "w");
    printf("[%d, %d, %d]", secret != 0, much != 0, own != 0);
}}
"""
    found = task_of("c", text, evaluate=none_of).evaluate()
    assert (found.status, found.fitness) == ("ok", 1.0), found


def none_of(value):
    return float(value == [0, 0, 0])


@needs_c
def test_a_harness_calls_the_program_as_often_as_it_likes() -> None:
    def harness(program):
        return [program(f"{k}\n") for k in range(4)]

    task = task_of("c", PROGRAMS["c"], evaluate=sum, harness=harness)
    assert task.evaluate().fitness == 12.0


@needs_c
def test_an_evaluator_of_other_tools_compiles_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "initial_program.c").write_text("int main(void) { return 7; }\n")
    (tmp_path / "task.toml").write_text('language = "c"\n')
    (tmp_path / "evaluator.py").write_text(
        "import subprocess\n"
        "def evaluate(program_path):\n"
        "    assert program_path.endswith('program.c'), program_path\n"
        "    subprocess.run(['cc', '-o', './a.out', program_path], check=True)\n"
        "    return {'combined_score': float(subprocess.run(['./a.out']).returncode)}\n"
    )
    task = evo.load_task(tmp_path)
    assert (task.record.isolation, task.evaluate().fitness) == ("shared", 7.0)


def test_what_is_missing_is_said_with_what_to_install(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(compiled, "PLACES", (str(tmp_path),) * 4)
    monkeypatch.chdir(tmp_path)
    assert find_tool("c") is None
    with pytest.raises(ProgramFailed, match=r"no compiler .* for c \(cc or gcc.*apt-get install"):
        build("c", PROGRAMS["c"])


def test_a_run_says_so_before_the_first_call(tmp_path, monkeypatch) -> None:
    absent = next((each for each in ("julia", "r", "go", "lua") if find_tool(each) is None), None)
    if absent is None:
        pytest.skip("every compiler is installed")
    task = task_of(absent, PROGRAMS[absent], evaluate=itself)
    with pytest.raises(TaskError, match=r"no compiler or interpreter for .* then `evo resume`"):
        evo.run(task, generations=1, children=1, log=tmp_path / "a.jsonl", progress=False)


def test_mistakes_are_refused_in_words(tmp_path: Path) -> None:
    for change, words in (
        ({"language": "cobol"}, "expected one of c, cpp"),
        ({"entry": "main"}, "run as a whole"),
        ({"initial_program": itself}, "expected the text of a program in c"),
        ({"initial_program": " \n"}, "expected a program, got nothing"),
    ):
        given = {"initial_program": PROGRAMS["c"], "language": "c", **change}
        with pytest.raises(ValueError, match=words):
            evo.task("x", evaluate=itself, statement="x", **given)
    (tmp_path / "initial_program.c").write_text("int main;\n")
    (tmp_path / "evaluator.py").write_text("def score(value):\n    return value\n")
    for toml, words in (
        ('language = "cobol"\nprogram = "initial_program.c"', "key 'language': expected one of c"),
        ('language = "c"\nevolves = "text"', "for a program of one file"),
    ):
        (tmp_path / "task.toml").write_text(toml)
        with pytest.raises(TaskError, match=words):
            evo.load_task(tmp_path)
