"""The command line as its users meet it: a process, its output, its exit status, its folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tacit import codec
from tacit.cli.main import main

TINY = "demo:users=60,items=50,mean=15"


def tacit(*words, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tacit", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "TACIT_DATA": "", **environment},
        timeout=120,
        check=False,
    )


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Runs a command in this process and an empty folder; the one line it refuses with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_DATA", "")

    def said(*words):
        assert main([str(word) for word in words]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("tacit: ")
        assert printed.err.count("\n") == 1
        return printed.err

    return said


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "run"
    done = tacit("run", "fedrec++", "--data", TINY, "--rounds", 30, "--out", folder, "--json")
    assert done.returncode == 0, done.stderr
    return folder, done


def test_json_is_one_object_and_nothing_else(finished):
    folder, done = finished
    result = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert {
        "method",
        "data",
        "split",
        "seed",
        "rounds",
        "settings",
        "metrics",
        "privacy",
        "traffic",
        "seconds",
        "run",
    } <= set(result)
    assert result["rounds"] == 30
    assert {"rmse", "mae", "hr@10", "ndcg@10"} <= set(result["metrics"])
    assert result["run"] == str(folder)
    traffic = {
        "up_bytes_per_client_round",
        "down_bytes_per_client_round",
        "total_bytes",
        "setup_bytes_per_client",
    }
    assert traffic <= set(result["traffic"])
    model = load_file(folder / "model" / "shared.safetensors")
    assert result["traffic"]["model_bytes"] == len(codec.encode_broadcast(model, 30))
    for line in result["privacy"]:
        assert {"observer", "unit", "adjacency", "epsilon", "delta", "mode", "assumes"} <= set(line)
        assert line["epsilon"] is None
    assert {"load", "train", "evaluate", "per_round"} <= set(result["seconds"])


def test_the_folder_holds_what_the_contract_names(finished):
    folder, _ = finished
    for name in ("config.toml", "metrics.jsonl", "ledger.jsonl", "result.json", "report.html"):
        assert (folder / name).is_file(), name
    assert any((folder / "model").glob("*.safetensors"))
    assert any((folder / "private").glob("*.safetensors"))
    ledger = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
    assert len(ledger) == 60
    assert {line["exchange"] for line in ledger} == {"train", "denoise"}
    total = sum(
        sum(line["traffic"][kind] for kind in ("up", "down", "letters_out", "letters_in")) for line in ledger
    )
    assert total == json.loads((folder / "result.json").read_text())["traffic"]["total_bytes"]


def test_the_configuration_of_a_run_gives_the_same_numbers(finished, tmp_path):
    folder, done = finished
    again = tacit("run", folder / "config.toml", "--out", tmp_path / "again", "--json")
    assert json.loads(again.stdout)["metrics"] == json.loads(done.stdout)["metrics"]


def test_recommendations_are_raw_ids_of_unseen_items(finished, tmp_path):
    folder, _ = finished
    known = json.loads(tacit("recommend", folder, "--user", 5, "--k", 7, "--json").stdout)["items"]
    assert len({row["item"] for row in known}) == 7
    assert [row["score"] for row in known] == sorted((row["score"] for row in known), reverse=True)
    history = tmp_path / "mine.csv"
    history.write_text("user,item,rating\nme,3,5\nme,8,1\nme,11,4\n")
    fresh = json.loads(tacit("recommend", folder, "--history", history, "--k", 50, "--json").stdout)["items"]
    assert not {3, 8, 11} & {row["item"] for row in fresh}
    assert len(fresh) == 47


LONG = ("fedrec", "--data", "demo", "--rounds", "1200", "--set", "rho=3")


def killed_after_some_rounds(folder, how):
    """Start a long run and stop it once it has something to lose; its exit status and last words."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit", "run", *LONG, "--out", folder, "--quiet"],
        env={**os.environ, "TACIT_DATA": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 60
    wanted = folder / ("checkpoint.safetensors" if how == signal.SIGKILL else "metrics.jsonl")
    while not wanted.exists() and time.monotonic() < until and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    return process.returncode, said.decode()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    return folder, json.loads(tacit("run", *LONG, "--out", folder, "--json").stdout)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_or_killed_run_resumes_to_the_same_numbers(how, tmp_path, uninterrupted):
    folder, (whole, expected) = tmp_path / "cut", uninterrupted
    status, said = killed_after_some_rounds(folder, how)
    assert not (folder / "result.json").exists()
    if how == signal.SIGINT:
        assert status == 130
        assert "--resume" in said
    found = json.loads(tacit("run", "--resume", folder, "--json").stdout)
    assert found["metrics"] == expected["metrics"]
    assert found["traffic"] == expected["traffic"]
    for name in ("ledger.jsonl", "metrics.jsonl", "model/shared.safetensors"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "fedrek"], "did you mean 'fedrec'"),
        (["run", "fedrec", "--data", "ml-1mm"], "did you mean 'ml-1m'"),
        (["run", "fedrec", "--split", "leave-one-uot"], "did you mean 'leave-one-out'"),
        (["run", "fedrec", "--set", "roh=1"], "did you mean 'rho'"),
        (["run", "fedrec", "--set", "rho"], "--set key=value"),
        (["run", "fedrec", "--set", "rho=-1"], "at least 0"),
        (["run", "fedrec", "--rounds", "-3"], "--rounds"),
        (["run", "fedrec", "--rounds", "0"], "above 0"),
        (["run", "pop", "--rounds", "3"], "leave --rounds out"),
        (["run", "pop", "--set", "preset=paper"], "pop has no preset 'paper'; there is none"),
        (["run", "fedrec", "--data", "demo:users=99999999999"], "too many"),
        (["run", "fedrec", "--data", TINY, "--rounds", "2", "--out", "/dev/null/runs"], "/dev/null/runs"),
        (["compare", "fedmf", "fedrec:roh=1", "--data", TINY], "did you mean 'rho'"),
        (["compare", "fedmf", "fedrec++:denoisers=0.5:rho=0", "--data", TINY], "above 0"),
        (["run", "pop", "--data", TINY, "--metrics", "hr@5,rmse"], "pop predicts no ratings"),
        (["run", "fedrec", "--data", TINY, "--set", "clients=90"], "up to 60"),
        (
            ["run", "fedrec++", "--data", TINY, "--set", "denoisers=60", "--out", "a/b"],
            "at least one denoiser",
        ),
        (["run", "fedrec", "--metrics", "hr@x"], "no metric is called"),
        (["run", "fedrec", "--protect", "gridd:4"], "did you mean 'grid'"),
        (["run", "fedrec", "--transport", "pigeon"], "direct"),
        (["run", "fedrec", "--device", "tpu"], "did you mean 'cpu'"),
        (["run", "nothere.toml"], "nothere.toml"),
        (["run"], "no method given"),
        (["run", "--resume", "nowhere"], "not a run folder"),
        (["run", "fedrec", "--nonsense"], "--nonsense"),
        (["recommend", "nowhere", "--user", "1"], "not a run folder"),
        (["data", "describe", "missing.csv"], "missing.csv"),
        (["bench", "mf-rond"], "did you mean 'mf-round'"),
        (["budget", "--users", "10", "--cohort", "20", "--rounds", "1", "--epsilon", "1"], "cohort"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(words, said, refused, tmp_path):
    assert said in refused(*words)
    assert not list(tmp_path.iterdir())


def test_a_mistake_ends_the_process_with_2(tmp_path):
    done = tacit("run", "fedrek", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tacit: no method is called 'fedrek'; did you mean 'fedrec'?\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("user,item,rating\n1,2,five\n", "line 2"),
        ("user,item,rating\n1,2,3\n1,2,4\n", "line 3"),
        ("user,thing\n1,2\n", "item"),
        ("user,item,rating\n", "no rows"),
        ("user,item,rating\n1,2,nan\n", "line 2"),
        ("user,item,rating\n1,2,3\n1,caf\xe9,4\n", "line 3"),
        ('user,item,rating\n1,"a,b",3\n1,caf\xe9,4\n', "line 3"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(text, said, refused, tmp_path):
    (tmp_path / "log.csv").write_bytes(text.encode("latin-1"))
    line = refused("run", "fedrec", "--data", "log.csv")
    assert "log.csv" in line
    assert said in line
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_run_folder_is_named_after_the_file_and_its_options(tmp_path):
    rows = "".join(
        f"{user},{item},{(user * 7 + item * 3) % 5 + 1}\n" for user in range(9) for item in range(9)
    )
    (tmp_path / "mine.csv").write_text(rows)
    data = f"{tmp_path}/mine.csv:columns=user/item/rating"
    done = tacit("run", "fedmf", "--data", data, "--rounds", 1, "--json", cwd=tmp_path)
    assert "fedmf-mine.csv-columns-user-item-rating-seed1" in json.loads(done.stdout)["run"]


def test_an_occupied_folder_is_left_alone(finished):
    folder, _ = finished
    before = sorted(path.stat().st_mtime_ns for path in folder.rglob("*"))
    done = tacit("run", "fedrec", "--data", TINY, "--out", folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--resume" in done.stderr
    assert sorted(path.stat().st_mtime_ns for path in folder.rglob("*")) == before


def test_a_folder_of_another_version_is_refused(finished, refused, tmp_path):
    config = (finished[0] / "config.toml").read_text().replace("layout = 1", "layout = 99")
    (tmp_path / "config.toml").write_text(config)
    for words in (["--resume", tmp_path], [tmp_path / "config.toml"]):
        assert "another version" in refused("run", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def without_the_ledger(run):
    (run / "ledger.jsonl").unlink()


def with_a_damaged_ledger(run):
    (run / "ledger.jsonl").write_bytes(b"{" * (run / "ledger.jsonl").stat().st_size)


def with_a_foreign_checkpoint(run):
    shutil.copy(run / "model" / "shared.safetensors", run / "checkpoint.safetensors")


def with_a_cut_checkpoint(run):
    (run / "checkpoint.safetensors").write_bytes((run / "checkpoint.safetensors").read_bytes()[:400])


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (without_the_ledger, "shorter than it was"),
        (with_a_damaged_ledger, "damaged"),
        (with_a_foreign_checkpoint, "does not fit"),
        (with_a_cut_checkpoint, "cannot be read as a checkpoint"),
    ],
)
def test_a_damaged_folder_is_not_gone_on_with(harm, said, finished, refused, tmp_path):
    """A run that went on without its ledger would report less than what left the devices."""
    run = tmp_path / "run"
    shutil.copytree(finished[0], run)
    (run / "result.json").unlink()
    harm(run)
    assert said in refused("run", "--resume", run)
    assert not (run / "result.json").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("protect = [1]", "wrong kind"),
        ("metrics = [1]", "wrong kind"),
        ("delta = 2.0", "below 1"),
        ("delta = nan", "below 1"),
        ("sed = 1", "did you mean 'seed'"),
        ("seed = true", "wrong kind"),
        ("[settings]\nroh = 1", "did you mean 'rho'"),
        ("[settings]\nrho = [1]", "at least 0"),
    ],
)
def test_a_mistake_in_an_experiment_file_is_one_line(line, said, refused, tmp_path):
    (tmp_path / "mine.toml").write_text(f'method = "fedrec"\ndata = "{TINY}"\n{line}\n')
    assert said in refused("run", "mine.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(tmp_path):
    """The ledger is on a device that is full: the run stops with one line."""
    from tacit.errors import TacitError
    from tacit.runtime.folder import RunFolder

    folder = RunFolder.created(tmp_path / "run", {"method": "fedrec"})
    (tmp_path / "run" / "ledger.jsonl").symlink_to("/dev/full")
    with pytest.raises(TacitError, match="no space left"):
        folder.append("ledger.jsonl", [{"round": 0}])


def test_every_command_shows_an_example():
    for command in ("run", "compare", "methods", "data", "recommend", "budget", "bench"):
        done = tacit(command, "--help")
        assert done.returncode == 0
        assert f"tacit {command}" in done.stdout
        assert "Example" in done.stdout


def test_every_command_can_be_quiet():
    import typer

    from tacit.cli.main import app

    group = typer.main.get_command(app)
    commands = dict(group.commands)
    for name, command in group.commands.items():
        commands |= {f"{name} {inner}": part for inner, part in getattr(command, "commands", {}).items()}
    assert len(commands) > 18
    for name, command in commands.items():
        assert any("--quiet" in option.opts for option in command.params), name


def test_lists_are_readable_and_parsable():
    assert "fedrec++" in tacit("methods").stdout
    assert "fedrec++" in json.loads(tacit("methods", "--json").stdout)["federated"]
    assert any(entry["name"] == "ml-1m" for entry in json.loads(tacit("data", "--json").stdout))
    assert json.loads(tacit("data", "describe", TINY, "--json").stdout)["users"] == 60


def test_compare_puts_twins_and_baselines_beside(tmp_path):
    done = tacit(
        "compare",
        "fedmf",
        "fedrec:rho=2",
        "--data",
        TINY,
        "--rounds",
        5,
        "--seeds",
        2,
        "--out",
        tmp_path,
        "--json",
    )
    table = json.loads(done.stdout)
    labels = [row["method"] for row in table["rows"]]
    assert labels[:2] == ["fedmf", "fedrec:rho=2"]
    assert {"user-mean", "bias"} <= set(labels)
    assert sum("central twin" in label for label in labels) == 1  # both twins are the same model
    row = table["rows"][1]
    assert {"mean", "sd"} == set(row["metrics"]["rmse"])
    assert 0 <= row["p"] <= 1
    assert table["rows"][0]["p"] is None


def test_importing_tacit_is_quick():
    heavy = ("torch", "numba", "scipy", "numpy")
    code = f"import sys, tacit; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
