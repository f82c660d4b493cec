"""Worker processes, however they are started: multiprocessing, joblib, and loaders of data as torch has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eman.creatures import Creature

from .test_lifetime import needs_fork, script

pytestmark = [pytest.mark.once, needs_fork]

#: What every program begins with: meshes as arrays, made without the library, and what to do to each.
COMMON = """
import functools, multiprocessing, sys, warnings
import numpy as np
import eman

warnings.simplefilter("ignore")  # of Python's about forking a process that has threads
arrays = np.load({path!r})
vertices, faces = arrays["vertices"], arrays["faces"]
meshes = [(vertices * (1, 1, 1 + number / 4), faces) for number in range(4)]

def here(model):
    return [model.predict(eman.Mesh(*mesh)) for mesh in meshes]

def same(found, expected):
    return len(found) == len(expected) and all(map(np.array_equal, found, expected))
"""


@pytest.fixture
def common(horse: Creature, tmp_path: Path) -> str:
    path = tmp_path / "horse.npz"
    np.savez(path, vertices=horse.vertices, faces=horse.faces)
    return COMMON.format(path=str(path))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools(method: str, common: str, tmp_path: Path) -> None:
    """Spawned processes take a model that was used here; forked ones say why they cannot, and can where it was not."""
    printed = script(
        common
        + f"""
def work(mesh, model=None):
    model = model or eman.Model.shipped("creature-parts")
    return model.predict(eman.Mesh(*mesh))

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    with context.Pool(2) as pool:
        alone = pool.map_async(work, meshes).get(timeout=50)
    model = eman.Model.shipped("creature-parts")
    expected = here(model)
    print(same(alone, expected))
    with context.Pool(2) as pool:
        built = [eman.Mesh(*mesh) for mesh in meshes]
        for function, given in ((work, meshes), (functools.partial(work, model=model), meshes), (model.predict, built)):
            try:
                print(same(pool.map_async(function, given).get(timeout=50), expected))
            except eman.ForkedError as error:
                print(error)
""",
        tmp_path,
        timeout=120,
    )
    alone, *after = printed.splitlines()
    assert alone == "True"
    if method == "fork":
        assert len(after) == 3
        assert all("fork" in line and "spawn" in line for line in after)
    else:
        assert after == ["True"] * 3


def test_joblib(common: str, tmp_path: Path) -> None:
    """Its processes (loky) and its threads."""
    pytest.importorskip("joblib", reason="joblib is not installed")
    printed = script(
        common
        + """
import joblib

if __name__ == "__main__":
    model = eman.Model.shipped("creature-parts")
    expected, built = here(model), [eman.Mesh(*mesh) for mesh in meshes]
    for backend in ("loky", "threading"):
        found = joblib.Parallel(2, backend, timeout=50)(joblib.delayed(model.predict)(mesh) for mesh in built)
        print(same(found, expected))
""",
        tmp_path,
        timeout=120,
    )
    assert printed.splitlines() == ["True", "True"]


#: What torch.utils.data.DataLoader does with num_workers: processes that hold the data set, each with a queue of the
#: indices that it shall fetch; results come back in any order, errors as text with their types.
LOADER = """
import queue, traceback

class Dataset:
    def __init__(self, meshes, model=None):
        self.meshes, self.model = meshes, model
    def __getitem__(self, index):
        if self.model is None:
            self.model = eman.Model.shipped("creature-parts")
        return self.model.predict(eman.Mesh(*self.meshes[index]))

def loop(dataset, indices, results, done):
    while not done.is_set():
        try:
            index = indices.get(timeout=1)
        except queue.Empty:
            continue
        try:
            results.put((index, dataset[index]))
        except Exception as error:
            results.put((index, f"{type(error).__name__}: {error}"))

def load(context, dataset, workers=2):
    results, done = context.Queue(), context.Event()
    queues = [context.Queue() for _ in range(workers)]
    processes = [context.Process(target=loop, args=(dataset, each, results, done), daemon=True) for each in queues]
    for process in processes:
        process.start()
    for index in range(len(dataset.meshes)):
        queues[index % workers].put(index)
    found = dict(results.get(timeout=50) for _ in dataset.meshes)
    done.set()
    for process in processes:
        process.join()
    return [found[index] for index in range(len(found))]
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loaders_of_data(method: str, common: str, tmp_path: Path) -> None:
    """A data set may hold a model, where workers are spawned; where they are forked, it makes it when first asked."""
    printed = script(
        common
        + LOADER
        + f"""
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    alone = load(context, Dataset(meshes))
    model = eman.Model.shipped("creature-parts")
    expected = here(model)
    print(same(alone, expected))
    after = load(context, Dataset(meshes, model))
    print({{each.split(":")[0] for each in after}} if {method!r} == "fork" else same(after, expected))
""",
        tmp_path,
        timeout=120,
    )
    assert printed.splitlines() == ["True", "{'ForkedError'}" if method == "fork" else "True"]
