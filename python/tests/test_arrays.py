"""What is read is what NumPy shows, for every type, layout, alignment and byte order."""

import itertools
import subprocess
import sys

import mclv
import numpy as np
import pytest
from mclv.errors import DataError, MclvError

N_ROWS, N_COLUMNS = 7, 66  # more than one word of bits

TYPES = ["?", "u1", "i1", "<u2", ">u2", "<i4", ">i8", "<u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "g"]


def grey(dtype):
    """Values in [0, 1] that the type can hold."""
    rng = np.random.default_rng(4)
    if np.dtype(dtype).kind in "?bui":
        return rng.integers(0, 2, (N_ROWS, N_COLUMNS)).astype(dtype)
    return (rng.integers(0, 65, (N_ROWS, N_COLUMNS)) / 64).astype(dtype)


def fill(view, values):
    view[...] = values
    return view


def of_buffer(dtype, offset, row_gap, column_gap):
    """A view into bytes, which begins at `offset` and has unused bytes between elements and rows."""
    dtype = np.dtype(dtype)
    step = dtype.itemsize + column_gap
    row = N_COLUMNS * step + row_gap
    bytes_ = np.full(offset + N_ROWS * row, 0xA5, dtype=np.uint8)
    return np.ndarray((N_ROWS, N_COLUMNS), dtype, bytes_, offset, (row, step))


def field(dtype, align):
    """A field of records, after a field of one byte."""
    record = np.dtype([("first", "u1"), ("x", dtype), ("last", "u2")], align=align)
    return np.zeros((N_ROWS, N_COLUMNS), record)["x"]


def subarray(dtype):
    """A field that holds a whole row."""
    record = np.dtype([("first", "u1"), ("x", dtype, (N_COLUMNS,)), ("last", "u1")])
    return np.zeros(N_ROWS, record)["x"]


LAYOUTS = {
    "C": lambda t: np.zeros((N_ROWS, N_COLUMNS), t),
    "Fortran": lambda t: np.zeros((N_ROWS, N_COLUMNS), t, order="F"),
    "every second": lambda t: np.zeros((2 * N_ROWS, 3 * N_COLUMNS), t)[::2, ::3],
    "backwards": lambda t: np.zeros((N_ROWS, N_COLUMNS), t)[::-1, ::-1],
    "upside down": lambda t: np.zeros((N_ROWS, N_COLUMNS), t)[::-1],
    "transposed": lambda t: np.zeros((N_COLUMNS, N_ROWS), t).T,
    "packed record": lambda t: field(t, False),
    "aligned record": lambda t: field(t, True),
    "rows in packed records": subarray,
    "slice of a cube": lambda t: np.zeros((N_ROWS, 3, N_COLUMNS), t)[:, 1],
    "read-only": lambda t: np.zeros((N_ROWS, N_COLUMNS), t),
}
LAYOUTS |= {
    f"bytes, offset {o}, gaps {g}": lambda t, o=o, g=g: of_buffer(t, o, *g)
    for o, g in itertools.product((0, 1, 3, 4), ((0, 0), (1, 0), (3, 1), (8, 0), (0, 8)))
}


def seen(array, **settings):
    """The rows as the package sees them."""
    from mclv._rows import as_rows

    return as_rows(array, **settings).to_numpy()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_every_layout_is_read_as_its_copy(dtype, layout):
    values = grey(dtype)
    array = fill(LAYOUTS[layout](dtype), values)
    array.flags.writeable = layout != "read-only"
    expected = np.ascontiguousarray(array).astype(np.float32)
    assert np.array_equal(expected, values.astype(np.float32)), "the test fills the array"
    assert np.array_equal(seen(array), expected)
    assert np.array_equal(seen(array), seen(array.copy())) and seen(array).dtype == seen(array.copy()).dtype
    # Weights and parameters are read the same way.
    model = mclv.RBM(array, array[:, 0], array[0])
    assert np.array_equal(model.weights, expected) and np.array_equal(model.hidden_bias, expected[0])


def test_the_layouts_are_what_they_are_called():
    assert not field("f8", False).flags.aligned and field("f8", True).flags.aligned
    assert any(stride % 8 for stride in field("f8", False).strides)
    assert not of_buffer("f4", 1, 0, 0).flags.aligned


def test_the_values_of_a_view_are_not_those_beside_it():
    """The negative control: what a reader sees that takes strides for whole elements."""
    array = fill(field("f8", False), grey("f8"))
    rounded = tuple(stride // 8 * 8 for stride in array.strides)
    wrong = np.lib.stride_tricks.as_strided(array.base.view("u1").reshape(-1)[: 8 * 400].view("f8"), (N_ROWS, 50), rounded)
    assert not np.array_equal(wrong, array[:, :50])


@pytest.mark.parametrize("byte", [2, 3, 128, 255])
def test_a_boolean_is_true_if_its_byte_is_not_zero(byte):
    values = np.random.default_rng(1).integers(0, 2, (40, 70)).astype(np.uint8)
    odd = (values * byte).view(bool)
    assert np.array_equal(seen(odd), values) and np.array_equal(seen(odd[:, ::2]), values[:, ::2])
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(values.astype(bool))
    matrix.data = np.full(matrix.nnz, byte, np.uint8).view(bool)
    assert np.array_equal(seen(matrix), values)
    trained = [mclv.train(X, 4, epochs=2, seed=1, watch=False).model for X in (odd, values)]
    assert trained[0] == trained[1]


def test_any_bytes_are_read_or_refused():
    """No bytes of any type end in an internal error."""
    rng = np.random.default_rng(2)
    for trial in range(300):
        dtype = np.dtype(TYPES[trial % len(TYPES)])
        bytes_ = rng.integers(0, 256, (3, 5 * dtype.itemsize), dtype=np.uint8)
        with np.errstate(all="ignore"):
            array = bytes_.view(dtype)
            for clip in (False, True):
                try:
                    rows = seen(array, clip=clip)
                except DataError as error:
                    assert "internal" not in str(error)
                else:
                    assert rows.shape == (3, 5) and ((rows >= 0) & (rows <= 1)).all()
            try:
                mclv.RBM(array, array[:, 0], array[0])
            except DataError as error:
                assert "finite" in str(error)


def test_damaged_states_are_refused_without_an_internal_error():
    bits = np.random.default_rng(0).integers(0, 2, (60, 9)).astype(np.uint8)
    from mclv import _mclv

    estimator = mclv.BernoulliRBM(4, random_state=0).partial_fit(bits)
    whole = estimator._feed.to_bytes()
    assert np.array_equal(_mclv.Feed.from_bytes(whole).model().weights, estimator._feed.model().weights)
    rng = np.random.default_rng(3)
    for trial in range(300):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 1 + trial % 4):
            damaged[at] = rng.integers(0, 256)
        damaged = bytes(damaged[: rng.integers(0, len(whole)) if trial % 3 == 0 else None])
        try:
            feed = _mclv.Feed.from_bytes(damaged)
            feed.add(_mclv.Rows.dense(bits, "X", False), 1)
        except MclvError as error:
            assert "internal error" not in str(error)


@pytest.mark.parametrize(
    ("X", "parts"),
    [
        (np.ones((2, 3), complex), ["complex", "X.real"]),
        (np.array([["a", "b"]]), ["texts", "numbers"]),
        (np.array([[b"a"]]), ["bytes", "numbers"]),
        (np.array([[0, "x"]], object), ["row 1, column 2 is 'x'"]),
        (np.array([[0, None], [1, {}]], object), ["row 1, column 2 is None", "missing"]),
        (np.array([[0, 1], [1, {}]], object), ["row 2, column 2 is {}"]),
        (np.array([[0, None]], object), ["NaN", "missing value"]),
        (np.array([["2020-01-01"]], "datetime64[D]"), ["dates"]),
        (np.array([[1]], "timedelta64[s]"), ["durations"]),
        (np.zeros((2, 2), [("a", "f8"), ("b", "f8")]), ["records with the fields a, b"]),
        ([[0, 1], [1]], ["is not a matrix"]),
        ([0, 1], ["1 dimensions", "reshape(1, -1)"]),
        (np.zeros((2, 2, 2)), ["3 dimensions"]),
        (5, ["0 dimensions"]),
        (np.array([[0, np.nan]]), ["row 1, column 2 is NaN"]),
        (np.array([[0, np.nan]], np.float16), ["row 1, column 2 is NaN"]),
        (np.array([[0, np.inf]]), ["row 1, column 2 is inf"]),
        (np.ma.array([[0, 1]], mask=[[0, 1]]), ["masked", "filled"]),
        (np.array([[0, 300]]), ["row 1, column 2 is 300"]),
        (np.array([[0, -1]], np.int8), ["row 1, column 2 is -1"]),
        (np.array([[0, 2**63]], np.uint64), ["row 1, column 2 is 9223372"]),
    ],
    ids=str,
)  # fmt: skip
def test_other_types_are_refused_with_place_and_cure(X, parts):
    with pytest.raises(DataError) as caught:
        mclv.train(X, 2, epochs=1, watch=False)
    assert str(caught.value).startswith("data") and all(part in str(caught.value) for part in parts), str(caught.value)


def test_masked_arrays_without_masked_values_are_arrays():
    assert np.array_equal(seen(np.ma.array([[0, 1]])), [[0, 1]])


def test_sparse_matrices_of_other_types():
    sparse = pytest.importorskip("scipy.sparse")
    X = grey("f4")
    for dtype, kind in itertools.product(("f4", "f8", ">f8", "g"), ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")):
        matrix = sparse.csr_array(X.astype(np.float64)).asformat(kind)
        if kind in ("csr", "csc"):
            matrix.data = matrix.data.astype(dtype)
        assert np.array_equal(seen(matrix), X), (dtype, kind)
    with pytest.raises(DataError, match="complex"):
        seen(sparse.csr_array(np.ones((2, 2), complex)))
    with pytest.raises(DataError, match="4294967295"):
        seen(sparse.csr_array((3, 2**40)))
    if hasattr(sparse, "coo_array"):
        with pytest.raises(DataError, match="1 dimensions"):
            seen(sparse.coo_array(np.ones(3)))


def test_data_frames_are_read_as_scikit_learn_reads_them(bits):
    pandas = pytest.importorskip("pandas")
    small = bits[:40, 10:20]
    expected = mclv.train(small, 3, epochs=2, seed=1).model
    names = [f"unit {i}" for i in range(10)]
    plain = pandas.DataFrame(small, columns=names)
    mixed = plain.astype({"unit 0": bool, "unit 1": float, "unit 2": "float32", "unit 3": object})
    nullable = plain.astype({"unit 0": "boolean", "unit 1": "Int64", "unit 2": "Float64"})
    for frame in (plain, plain.astype(bool), mixed, nullable):
        assert mclv.train(frame, 3, epochs=2, seed=1).model == expected
        estimator = mclv.BernoulliRBM(3, n_iter=2, random_state=1).fit(frame)
        assert list(estimator.feature_names_in_) == names
        assert np.array_equal(estimator.components_, mclv.BernoulliRBM(3, n_iter=2, random_state=1).fit(small).components_)
    nullable.iloc[4, 1] = pandas.NA
    with pytest.raises(DataError, match="row 5, column 2 is <NA>.*fill in missing values"):
        mclv.train(nullable, 3)
    with pytest.raises(DataError, match="row 1, column 2 is 'a'"):
        mclv.train(pandas.DataFrame({"x": [0.5], "y": ["a"]}), 3)
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(small, schema=names)
    for frame in (frame, frame.cast(polars.Boolean), frame.cast(polars.Float32)):
        assert mclv.train(frame, 3, epochs=2, seed=1).model == expected
    with pytest.raises(DataError):
        mclv.train(polars.DataFrame({"x": [0.5], "y": ["a"]}), 3)


LARGE = """
import resource, mclv, numpy as np
from scipy import sparse
from mclv import _mclv
bits = np.random.default_rng(0).integers(0, 2, (50, 20)).astype(np.uint8)
model = mclv.RBM(np.zeros((20, 5)), np.zeros(20), np.zeros(5))
mclv.train(bits, 5, epochs=1)
hard = 6 * 2**30
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
try:
    {call}
except MemoryError as error:
    print("MemoryError", error)
except (ValueError, RuntimeError) as error:
    print("refused", error)
"""


@pytest.mark.parametrize(
    "call",
    ["model.sample(10**9)", "model.sample(10**12)", "model.sample(2**62)", "model.sample(10**9, method='gibbs', means=True)",
     "mclv.train(bits, 10**9)", "mclv.train(bits, 10**15)", "mclv.train(bits, 2**63)",
     "mclv.train(bits, 5, gradient='pcd', n_chains=10**12)", "mclv.train(bits, 5, gradient='tempered', n_chains=10**9, n_rungs=10**9)",
     "mclv.train(bits, 5, gradient='lvs', samples_per_row=10**12)",
     "mclv.BernoulliRBM(10**10).fit(bits)", "mclv.BernoulliRBM(10**10).partial_fit(bits)", "mclv.BernoulliRBM(5, n_chains=10**12).partial_fit(bits)",
     "mclv.log_partition(model, 'ais', n_chains=10**12)", "mclv.log_partition(model, 'ais', n_betas=10**12)", "mclv.log_partition(model, 'mclv', n_tours=10**13)",
     "mclv.StoppingSet.from_data(model, bits, samples_per_row=10**12)", "mclv.StoppingSet.from_chains(model, n_chains=10**12)",
     "mclv.tours(model, mclv.StoppingSet([[0] * 5]), 10**13)",
     "model.free_energy(np.broadcast_to(np.zeros(20), (10**12, 20)))", "model.mean_hidden(np.broadcast_to(np.full(20, .5), (10**9, 20)))",
     "model.free_energy(sparse.csc_array((10**12, 20)))", "mclv.train(sparse.csr_array((10**6, 10**9)), 5)",
     "_mclv.Rows.dense(bits, 'X', False).to_numpy(); mclv.RBM(np.broadcast_to(np.float32(0), (10**6, 10**6)), np.zeros(10**6), np.zeros(10**6))"],
)  # fmt: skip
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
def test_what_does_not_fit_into_memory_is_a_memory_error(call):
    done = subprocess.run([sys.executable, "-c", LARGE.format(call=call)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith(("MemoryError", "refused")), (done.returncode, done.stdout, done.stderr)
