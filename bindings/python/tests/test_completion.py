"""Shells complete the command line: asked themselves what they would offer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("shtab", reason="shtab is not installed")

from eman import cli, shipped

pytestmark = pytest.mark.once

#: What is typed, and what is offered in a folder with the mesh body.obj and the folder bodies.
CASES = {
    "eman pre": {"predict"},
    "eman predict --confi": {"--confidence"},
    "eman predict bo": {"body.obj", "bodies"},
    "eman predict body.obj --model ": {*shipped.names(), "body.obj", "bodies"},
    "eman predict body.obj --model hum": {"human-parts"},
    "eman train --preset s": {"surface"},
    "eman batch --output bo": {"bodies"},
    "eman batch body.obj --engine ": {"processes", "ray"},
    "eman reproduce table": {"table1", "table2", "table3", "table4"},
}


def completion(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder's file with what the program prints for a shell."""
    (folder / "body.obj").touch()
    (folder / "bodies").mkdir()
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--print-completion", shell])
    assert stopped.value.code == 0
    path = folder / "bodies" / f"completion.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


def asked(folder: Path, *command: str) -> list[str]:
    """What a shell prints."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


#: What bash itself does when Tab is pressed: it sets the words and calls the function that is registered.
BASH = """
source {path}
COMP_WORDS=({line}{empty}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
registered=$(complete -p eman)
[[ $registered =~ -F\\ ([^ ]+) ]]
${{BASH_REMATCH[1]}} eman "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def test_bash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = completion("bash", tmp_path, capsys)
    for line, offered in CASES.items():
        script = BASH.format(path=path, line=line, empty=" ''" if line.endswith(" ") else "")
        assert {each.rstrip("/ ") for each in asked(tmp_path, "bash", "--norc", "-c", script)} == offered, line


def test_fish(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "bodies"))
    path = completion("fish", tmp_path, capsys)
    for line, offered in CASES.items():
        found = asked(tmp_path, "fish", "--no-config", "-c", f"source {path}; complete -C '{line}'")
        assert {each.split("\t")[0].rstrip("/") for each in found} == offered, line


def test_zsh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It takes the file as its completion of the program; what it offers shows on a terminal only."""
    path = completion("zsh", tmp_path, capsys)
    script = f'autoload -Uz compinit; compinit -D; eval "$(<{path})"; print ${{_comps[eman]}}; whence -w _eman_models'
    assert asked(tmp_path, "zsh", "-f", "-c", script) == ["_shtab_eman", "_eman_models: function"]
    assert all(name in path.read_text() for name in shipped.names())


def test_without_shtab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--print-completion", "bash"])
    assert stopped.value.code == 3
    assert capsys.readouterr().err == "eman: completion needs shtab: pip install eman[completion]\n"
