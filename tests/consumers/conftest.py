"""Installed trees, moved to where they were not installed, and a Windows."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from platforms import ARM64, NATIVE, OLD_GLIBC, WINDOWS, Platform, make, need


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Platform], Path]:
    """The tree that make install writes for a platform, moved to another folder."""
    trees: dict[str, Path] = {}

    def install(platform: Platform) -> Path:
        if platform.name not in trees:
            folder = tmp_path_factory.mktemp("installed")
            options = [f"PLATFORM={platform.name}"] if platform.name else []
            make("install", f"DESTDIR={folder}", "PREFIX=/opt/first", *options)
            trees[platform.name] = (folder / "opt" / "first").rename(folder / "moved")
        return trees[platform.name]

    return install


@pytest.fixture(scope="session")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A fresh Windows for this session. Wine 8 lacks the source of random numbers that Go takes on Windows 10."""
    need("wine", "wineserver", WINDOWS.cc)
    prefix = tmp_path_factory.mktemp("wine") / "prefix"
    WINDOWS.environment["WINEPREFIX"] = str(prefix)
    environment = {**os.environ, **WINDOWS.environment, "DISPLAY": ""}
    subprocess.run(["wine", "wineboot", "-i"], env=environment, check=True, capture_output=True, timeout=180)
    random = prefix / "drive_c" / "windows" / "system32" / "bcryptprimitives.dll"
    if not random.exists():
        source = Path(__file__).with_name("bcryptprimitives.c")
        subprocess.run([WINDOWS.cc, "-shared", str(source), "-o", str(random), "-ladvapi32"], check=True)
    yield
    subprocess.run(["wineserver", "-k"], env=environment, check=False)


@pytest.fixture(params=[NATIVE, OLD_GLIBC, ARM64, WINDOWS], ids=lambda p: p.name or "native")
def platform(request: pytest.FixtureRequest) -> Platform:
    """Each platform whose programs run here."""
    chosen: Platform = request.param
    if chosen is OLD_GLIBC and os.uname().machine != "x86_64":
        pytest.skip("this is no x86-64")
    need(chosen.cc, *chosen.emulator[:1])
    if chosen is WINDOWS:
        request.getfixturevalue("wine")
    return chosen
