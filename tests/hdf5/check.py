"""Check that the program reads models of h5py in the layout of `rbms`, and h5py the program's."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

program, folder = sys.argv[1], Path(tempfile.mkdtemp())


def mclv(*args):
    return subprocess.run([program, *map(str, args)], cwd=folder, capture_output=True, text=True)


def refused(*args):
    done = mclv(*args)
    assert done.returncode == 1 and not done.stdout, done
    return done.stderr


rng = np.random.default_rng(5)
# Rows of data, with labels.
with h5py.File(folder / "rows.h5", "w") as file:
    file.create_dataset("samples", data=rng.integers(0, 2, (30, 6)).astype(np.uint8), chunks=True, compression="gzip")
    file["labels"] = np.arange(30) % 3
shown = mclv("data", "show", "rows.h5", "--json")
assert shown.returncode == 0, shown.stderr
shown = json.loads(shown.stdout)
with h5py.File(folder / "rows.h5") as file:
    assert shown["first_rows"] == file["samples"][:6].astype(float).tolist()
assert (shown["classes"], shown["provenance"]["n_rows"], shown["binary"]) == (["0", "1", "2"], 30, True)
with h5py.File(folder / "other.h5", "w") as file:
    file["rows"] = np.eye(3)
assert 'has no data set "samples"; it holds rows' in refused("data", "show", "other.h5")

w, b, a = rng.normal(size=(70, 9)).astype(np.float32), rng.normal(size=70).astype(np.float32), rng.normal(size=9).astype(np.float32)
with h5py.File(folder / "rbms.h5", "w") as file:
    # Single or double precision, plain or compressed; the last update is the one with the largest number.
    for n, scale, dtype in ((20, 1.0, np.float64), (3, 0.5, np.float32)):
        params = file.create_group(f"update_{n}/params")
        params["weight_matrix"] = scale * w.astype(dtype)
        params.create_dataset("vbias", data=scale * b.astype(dtype), chunks=True, compression="gzip")
        params["hbias"] = scale * a.astype(dtype)
    file["hyperparameters/lr"] = 0.1
    other = file.create_group("update_4/params")
    other["weight_matrix"], other["vbias"], other["hbias"] = w[:, 0], b, a

for args, scale in (((), 1.0), (("--update", 3), 0.5)):
    done = mclv("convert", "rbms.h5", "m.npz", "--force", *args)
    assert done.returncode == 0, done.stderr
    model = np.load(folder / "m.npz")
    assert np.array_equal(model["components_"], scale * w.T)
    assert np.array_equal(model["intercept_visible_"], scale * b) and np.array_equal(model["intercept_hidden_"], scale * a)

done = mclv("convert", "m.npz", "back.hdf5", "--update", 7)
assert done.returncode == 0, done.stderr
with h5py.File(folder / "back.hdf5") as file:
    params = file["update_7/params"]
    assert params["weight_matrix"].dtype == np.float32 and np.array_equal(params["weight_matrix"], w / 2)
    assert np.array_equal(params["vbias"], b / 2) and np.array_equal(params["hbias"], a / 2)

assert "no update 5; its updates are [3, 4, 20]" in refused("convert", "rbms.h5", "x.npz", "--update", 5)
assert "(n_visible, n_hidden) expected" in refused("convert", "rbms.h5", "x.npz", "--update", 4)
assert "already exists" in refused("convert", "m.npz", "back.hdf5")
(folder / "text.h5").write_text("no HDF5")
assert "text.h5 is not an HDF5 file" in refused("convert", "text.h5", "x.npz")
(folder / "cut.h5").write_bytes((folder / "rbms.h5").read_bytes()[:3000])
refused("convert", "cut.h5", "x.npz")
with h5py.File(folder / "empty.h5", "w") as file:
    huge = file.create_group("update_1/params")
    huge.create_dataset("weight_matrix", shape=(1 << 20, 1 << 20), dtype="f4", chunks=(64, 64))
assert "bytes of values" in refused("convert", "empty.h5", "x.npz")
assert not (folder / "x.npz").exists()
print("HDF5 files of rbms: read and written")
