"""The plugin that lets no test be skipped in continuous integration."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WAYS = {
    "module": "import pytest\npytest.importorskip('no_such_module')\ndef test(): pass\n",
    "mark": "import pytest\n@pytest.mark.skipif(True, reason='by a mark')\ndef test(): pass\n",
    "fixture": "import pytest\n@pytest.fixture\ndef data(): pytest.skip('in a fixture')\ndef test(data): pass\n",
    "body": "import pytest\ndef test(): pytest.skip('in the test')\n",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ci", ["true", ""])
def test_a_skip_is_a_failure_in_ci(tmp_path: Path, way: str, ci: str) -> None:
    (tmp_path / f"test_{way}.py").write_text(WAYS[way] + "def test_beside(): pass\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no_skips", tmp_path],
        env={**os.environ, "CI": ci, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    passes = ci != "true" and way != "module"  # a module whose tests are all skipped has none: status 5
    assert (run.returncode == 0) == passes, run.stdout
    named = any(line.startswith("skipped in CI: ") and f"test_{way}.py" in line for line in run.stdout.splitlines())
    assert named == (ci == "true"), run.stdout
