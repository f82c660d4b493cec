"""What make dist and make deb write: complete, the same bytes from any folder, and used as their users do."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from platforms import ARM64, NATIVE, OLD_GLIBC, PROGRAMS, ROOT, WINDOWS, Platform, make, need

ALL = ("linux-amd64", "linux-arm64", "windows-amd64", "darwin-amd64", "darwin-arm64")
LIBRARIES = {"linux": "lib/libeman.so.1", "windows": "bin/eman.dll", "darwin": "lib/libeman.1.dylib"}
VERSION = re.search(r'EMAN_VERSION_STRING "(.*)"', (ROOT / "include" / "eman.h").read_text())[1]  # type: ignore[index]
PUBLIC = set(re.findall(r"^\s+(eman_\w+);", (ROOT / "capi" / "exports.map").read_text(), re.M))
AGAIN = ("linux-amd64", "windows-amd64")  # built once more, by zig and by mingw

# Trainings take a minute under qemu.
RUNS = [
    (platform, program)
    for platform in (OLD_GLIBC, ARM64, WINDOWS)
    for program in ("features.c", "surfaces.c", "trainers.c", "unreadable.c")
    if (platform, program) != (ARM64, "trainers.c")
]


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need(WINDOWS.cc)
    folder = tmp_path_factory.mktemp("dist")
    make("dist", f"DIST={folder}")
    return folder


@pytest.fixture(scope="session")
def debs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    need("dpkg-deb", "dpkg-shlibdeps")
    folder = tmp_path_factory.mktemp("deb")
    make("deb", f"DEBS={folder}")
    return sorted(folder.iterdir())


@pytest.fixture(scope="session")
def trees(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each archive, unpacked."""
    folder = tmp_path_factory.mktemp("trees")
    for name in ALL:
        output("tar", "-xzf", dist / f"eman-{VERSION}-{name}.tar.gz", "-C", folder)
    return {name: folder / f"eman-{VERSION}-{name}" for name in ALL}


def test_checksums(dist: Path) -> None:
    lines = [line.split("  ") for line in (dist / "SHA256SUMS").read_text().splitlines()]
    assert {name: digest for digest, name in lines} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dist.iterdir() if path.name != "SHA256SUMS"
    }
    assert len(lines) == 5 * len(ALL)  # archive, bill of materials, wheel, extension, legacy add-on


def test_the_same_bytes_from_another_folder(dist: Path, debs: list[Path], tmp_path: Path) -> None:
    made = [line.strip("/") for line in (ROOT / ".gitignore").read_text().split()]
    copy = shutil.copytree(ROOT, tmp_path / "copy", symlinks=True, ignore=shutil.ignore_patterns(".git", *made))
    # Its own name for the compiler makes Go compile all C anew.
    (copy / "build").mkdir()
    (copy / "build" / "venv").symlink_to(ROOT / "build" / "venv")
    keep = [word for stamp in ("stamp", "packaging") for word in ("-o", f"build/venv/{stamp}")]
    # As make takes it here, in a checkout or in the sources alone.
    epoch = output("bash", "-c", 'git -C "$0" log -1 --format=%ct 2>/dev/null || echo 0', ROOT).strip()
    make("-C", str(copy), *keep, "dist", "deb", f"PLATFORMS={' '.join(AGAIN)}", f"SOURCE_DATE_EPOCH={epoch}")
    again = [*(copy / "build" / "dist").iterdir(), *(copy / "build" / "deb").iterdir()]
    first = {path.name: path for path in (*dist.iterdir(), *debs)}
    compared = [path for path in again if path.name != "SHA256SUMS"]
    assert len(compared) == 5 * len(AGAIN) + 2
    assert [p.name for p in compared if p.read_bytes() != first[p.name].read_bytes()] == []


@pytest.mark.parametrize("name", ALL)
def test_bill_of_materials(dist: Path, trees: dict[str, Path], name: str) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = (dist / f"eman-{VERSION}-{name}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    system, processor = name.split("-")
    library = trees[name] / LIBRARIES[system]
    root = bill["metadata"]["component"]
    assert root["hashes"][0]["content"] == hashlib.sha256(library.read_bytes()).hexdigest()
    command = ["env", f"GOOS={system}", f"GOARCH={processor}", "CGO_ENABLED=1", "go", "list", "-C", ROOT, "-deps"]
    linked = output(*command, "-f", "{{with .Module}}{{.Path}}{{end}}", "./capi").split()
    assert {c["name"] for c in bill["components"]} == (set(linked) - {"libeman"}) | {"std"}
    notices = (trees[name] / "share" / "doc" / "libeman" / "NOTICES").read_text()
    assert all(f"{module}: LICENSE" in notices for module in set(linked) - {"libeman"})


@pytest.mark.parametrize("name", ALL)
def test_exactly_the_public_names_leave_the_library(trees: dict[str, Path], name: str) -> None:
    system = name.split("-")[0]
    library = trees[name] / LIBRARIES[system]
    if system == "windows":
        need("x86_64-w64-mingw32-objdump")
        table = output("x86_64-w64-mingw32-objdump", "-p", library).split("Name Pointer] Table")[1].split("\n\n")[0]
        found = set(re.findall(r"(\w+)$", table, re.M))
    elif system == "darwin":  # zig's linker takes the list of exports, but does not obey it
        need("llvm-nm")
        found = {line.split()[-1][1:] for line in output("llvm-nm", "-gU", library).splitlines()} & PUBLIC
    else:
        lines = [line.split() for line in output("nm", "-D", "--defined-only", library).splitlines()]
        found = {words[2].split("@")[0] for words in lines if words[1] != "A"}
    assert found == PUBLIC


@pytest.mark.parametrize("name", ["linux-amd64", "linux-arm64"])
def test_dynamic_section(trees: dict[str, Path], name: str) -> None:
    section = output("readelf", "-d", trees[name] / LIBRARIES["linux"])
    assert "NODELETE" in section and "NOW" in section and "TEXTREL" not in section
    assert set(re.findall(r"NEEDED.*\[(.*)\]", section)) <= {"libc.so.6", "libpthread.so.0", "ld-linux-aarch64.so.1"}
    symbols = output("objdump", "-T", trees[name] / LIBRARIES["linux"])
    assert max((int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)) <= (2, 17)


def test_library_of_windows(trees: dict[str, Path]) -> None:
    """It needs nothing of the compiler that built it."""
    need("x86_64-w64-mingw32-objdump")
    headers = output("x86_64-w64-mingw32-objdump", "-p", trees["windows-amd64"] / LIBRARIES["windows"])
    assert set(re.findall(r"DLL Name: (\S+)", headers)) == {"KERNEL32.dll", "msvcrt.dll"}


@pytest.mark.parametrize("name", ["darwin-amd64", "darwin-arm64"])
def test_library_of_macos(trees: dict[str, Path], name: str) -> None:
    """It is loaded by its place beside the program, needs the system alone and, on arm64, is signed ad hoc."""
    need("llvm-objdump")
    commands = output("llvm-objdump", "--macho", "--private-headers", trees[name] / LIBRARIES["darwin"])
    assert "name @rpath/libeman.1.dylib" in commands and "minos 12.0" in commands
    assert set(re.findall(r"cmd LC_LOAD_DYLIB\n.*\n +name (\S+)", commands)) == {"/usr/lib/libSystem.B.dylib"}
    assert name != "darwin-arm64" or "LC_CODE_SIGNATURE" in commands


@pytest.mark.parametrize(("platform", "program"), RUNS, ids=lambda x: getattr(x, "name", x), indirect=["platform"])
def test_programs_run(trees: dict[str, Path], tmp_path: Path, platform: Platform, program: str) -> None:
    tree = trees[platform.name]
    built = platform.compile(PROGRAMS / program, tmp_path / "program.exe", "-leman", "-pthread", tree=tree)
    assert re.search("difference after a similarity|^0 failures", platform.run(built, tree=tree), re.M)


@pytest.mark.parametrize(
    ("tag", "file"),
    [
        ("manylinux_2_14_x86_64", "libeman.so"),
        ("manylinux_2_17_aarch64", "libeman.so"),
        ("win_amd64", "eman.dll"),
        ("macosx_12_0_x86_64", "libeman.dylib"),
        ("macosx_12_0_arm64", "libeman.dylib"),
    ],
)
def test_wheels(dist: Path, tmp_path: Path, tag: str, file: str) -> None:
    """pip takes each for its platform, and finds the library where the package looks for it."""
    wheel = dist / f"eman-{VERSION}-py3-none-{tag}.whl"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--only-binary=:all:"]
    subprocess.run([*command, "--platform", tag, "--target", tmp_path, wheel], check=True)
    assert (tmp_path / "eman" / file).exists()
    if tag.startswith("manylinux") and tag.endswith(subprocess.getoutput("uname -m")):
        program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import eman; print(eman.build_info()['library'])"
        assert output(sys.executable, "-c", program).strip() == str(tmp_path / "eman" / file)


@pytest.mark.parametrize("name", ["linux-x64", "linux-arm64", "windows-x64", "macos-x64", "macos-arm64"])
def test_addons(dist: Path, name: str) -> None:
    with zipfile.ZipFile(dist / f"eman-blender-{VERSION}-{name}.zip") as extension:
        manifest = extension.read("blender_manifest.toml").decode()
        (wheel,) = (file for file in extension.namelist() if file.endswith(".whl"))
        assert f'\nplatforms = ["{name}"]\nwheels = ["./{wheel}"]\n' in manifest
    file = {"linux": "libeman.so", "windows": "eman.dll", "macos": "libeman.dylib"}[name.split("-")[0]]
    with zipfile.ZipFile(dist / f"eman-blender-{VERSION}-{name}-legacy.zip") as legacy:
        assert f"eman_addon/vendor/eman/{file}" in legacy.namelist()


def test_debian_packages(debs: list[Path], tmp_path: Path) -> None:
    """Installed by dpkg into a system of their own, except that this one's C library serves them."""
    root = tmp_path / "root"
    (root / "var" / "lib" / "dpkg" / "info").mkdir(parents=True)
    (root / "var" / "lib" / "dpkg" / "updates").mkdir()
    (root / "var" / "lib" / "dpkg" / "status").touch()
    options = ["--force-depends", "--force-not-root", "--force-script-chrootless", f"--root={root}"]
    subprocess.run(["dpkg", *options, f"--log={tmp_path / 'log'}", "-i", *debs], check=True, capture_output=True)
    listed = output("dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "-W", "-f", "${Package} ${Depends}\n")
    libdir = root / "usr" / "lib" / output("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
    assert re.search(r"libeman-dev libeman1 \(= .*\)\nlibeman1 libc6 \(>= 2\.\d+\)", listed)
    flags = [f"-L{libdir}", "-leman", f"-Wl,-rpath,{libdir}"]
    program = NATIVE.compile(PROGRAMS / "features.c", tmp_path / "program", *flags, tree=root / "usr")
    assert "difference after a similarity" in NATIVE.run(program, tree=root / "usr")


def test_debian_policy(debs: list[Path]) -> None:
    need("lintian")
    result = subprocess.run(["lintian", "--fail-on", "error,warning", *debs], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
