"""The Blender add-on: its two zip files, and every operator in Blender itself, headless and with real clicks."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
LIBRARY = ROOT / "build" / "libeman.so"
sys.path.insert(0, str(ROOT / "bindings" / "blender"))
import build  # noqa: E402

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = None


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.legacy(ROOT / "bindings" / "python" / "eman", LIBRARY, tmp_path_factory.mktemp("legacy"))


@pytest.fixture(scope="module")
def blender() -> str:
    found = shutil.which("blender")
    if found is None:
        pytest.skip("Blender is not installed")
    return found


def run(command: list[str], home: Path, wanted: str) -> None:
    """Run Blender as a new user, in an empty home."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("EMAN_", "PYTHON", "DISPLAY"))}
    done = subprocess.run(
        command, env={**environment, "HOME": str(home)}, capture_output=True, text=True, timeout=420, cwd=home
    )
    text = done.stdout + done.stderr
    print(text)
    assert done.returncode == 0 and wanted in text and "Traceback" not in done.stderr, text[-3000:]


def test_every_operator(blender: str, legacy: Path, tmp_path: Path) -> None:
    """Install the zip, enable, run every operator, undo, disable; what is wrong is reported in words."""
    script = ["--python-exit-code", "3", "--python", str(HERE / "operators.py"), "--", str(legacy), str(tmp_path)]
    run([blender, "-b", "--factory-startup", *script], tmp_path, "all operators ran")


def test_the_results_are_those_of_the_package(blender: str, legacy: Path, tmp_path: Path) -> None:
    """Bit for bit, on quads, n-gons, modifiers, shape keys, scaled and shared objects; what cannot be is refused."""
    script = ["--python-exit-code", "3", "--python", str(HERE / "equality.py"), "--", str(legacy), str(tmp_path)]
    run([blender, "-b", "--factory-startup", *script], tmp_path, "everything is the same")


@pytest.mark.parametrize("script, said", [("operators", "all operators ran"), ("equality", "everything is the same")])
@pytest.mark.parametrize("version", ["4.5", "5.0"])
def test_the_extension_in_newer_versions(version: str, script: str, said: str, tmp_path: Path) -> None:
    """The same in newer versions, from the extension with its wheel."""
    python = ROOT / "build" / f"bpy-{version}" / "bin" / "python"
    wheels = sorted((ROOT / "build" / "wheel").glob("*.whl"))
    if not python.exists() or not wheels:
        pytest.skip(f"there is no bpy {version} in build, or no wheel: make test-blender makes them")
    zip_file = build.extension(wheels[-1], tmp_path)
    run([str(python), str(HERE / f"{script}.py"), "--", str(zip_file), str(tmp_path)], tmp_path, said)


def test_the_interface(blender: str, legacy: Path, tmp_path: Path) -> None:
    """Real clicks under a virtual display: the tab, the button, a training that does not freeze, ESC, another file."""
    if shutil.which("xvfb-run") is None:
        pytest.skip("xvfb-run is not installed")
    screen = ["xvfb-run", "-a", "-s", "-screen 0 1280x800x24"]
    window = ["--factory-startup", "--enable-event-simulate", "-p", "0", "0", "1280", "800"]
    script = ["--python", str(HERE / "interface.py"), "--", str(legacy), str(tmp_path)]
    run([*screen, blender, *window, *script], tmp_path, "the interface works")
    assert (tmp_path / "panel.png").stat().st_size > 20_000


def test_the_legacy_zip(legacy: Path) -> None:
    names = zipfile.ZipFile(legacy).namelist()
    assert {name.split("/")[0] for name in names} == {"eman_addon"}
    assert {"eman_addon/__init__.py", "eman_addon/vendor/eman/__init__.py", "eman_addon/vendor/eman/libeman.so"} <= {
        *names
    }
    assert not [name for name in names if "__pycache__" in name or name.endswith("manifest.toml")]
    again = build.legacy(ROOT / "bindings" / "python" / "eman", LIBRARY, legacy.parent / "again")
    assert again.read_bytes() == legacy.read_bytes()


@pytest.mark.skipif(tomllib is None, reason="there is no tomllib before Python 3.11")
def test_the_extension(tmp_path: Path) -> None:
    """The rules of Blender's extensions platform for the manifest."""
    wheel = tmp_path / "eman-0.1.0-py3-none-manylinux_2_17_x86_64.whl"
    wheel.write_bytes(b"")
    archive = zipfile.ZipFile(build.extension(wheel, tmp_path))
    manifest = tomllib.loads(archive.read("blender_manifest.toml").decode())
    wanted = {
        "schema_version",
        "id",
        "version",
        "name",
        "tagline",
        "maintainer",
        "type",
        "blender_version_min",
        "license",
    }
    assert wanted <= manifest.keys()
    assert (manifest["schema_version"], manifest["type"], manifest["blender_version_min"]) == (
        "1.0.0",
        "add-on",
        "4.2.0",
    )
    assert manifest["id"].isidentifier() and manifest["version"].count(".") == 2
    assert len(manifest["tagline"]) <= 64 and manifest["tagline"][-1].isalnum()
    assert manifest["license"] == ["SPDX:GPL-3.0-or-later"]
    assert manifest["platforms"] == ["linux-x64"]
    assert all(len(reason) <= 64 and reason[-1].isalnum() for reason in manifest["permissions"].values())
    names = archive.namelist()
    assert all(path.removeprefix("./") in names for path in manifest["wheels"]) and len(manifest["wheels"]) == 1
    assert "__init__.py" in names and not [name for name in names if name.startswith("vendor")]
    sources = "".join(archive.read(name).decode() for name in names if name.endswith(".py"))
    assert "import eman_addon" not in sources and "from eman_addon" not in sources  # relative imports only
    assert not [word for word in ("urllib", "requests", "socket", "subprocess", "pip") if f"import {word}" in sources]
