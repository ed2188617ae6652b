"""`mclv.train`: equal to the command line, callbacks, interruption, guards."""

import os
import signal
import threading
import time

import mclv
import numpy as np
import pytest
from mclv.errors import SettingError


def same_bits(a, b):
    return all(np.array_equal(getattr(a, x).view(np.uint32), getattr(b, x).view(np.uint32))
               for x in ("weights", "visible_bias", "hidden_bias"))  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ([], {}),
        (["--gradient", "cd", "--k", 2, "--centred=false"], {"gradient": "cd", "k": 2, "centred": False}),
        (["--gradient", "pcd", "--n-chains", 50, "--optimizer", "adam"], {"gradient": "pcd", "n_chains": 50, "optimizer": "adam"}),
        (["--gradient", "lvs", "--samples-per-row", 2], {"gradient": "lvs", "samples_per_row": 2}),
        (["--gradient", "lvs", "--unfinished", "keep", "--k", 3], {"gradient": "lvs", "unfinished": "keep", "k": 3}),
        (["--gradient", "tempered", "--n-chains", 12, "--n-rungs", 5], {"gradient": "tempered", "n_chains": 12, "n_rungs": 5}),
        (["--preset", "paper", "--warm-up-epochs", 1], {"preset": "paper", "warm_up_epochs": 1}),
        (["--gradient", "exact", "--momentum", 0.5, "--l2", 1e-4], {"gradient": "exact", "momentum": 0.5, "l2": 1e-4}),
    ],
)
def test_the_model_is_the_command_lines_bit_for_bit(cli, digits, tmp_path, flags, settings):
    cli("train", "digits", "--n-hidden", 9, "--epochs", 4, "--seed", 7, "--output", "run", *flags, cwd=tmp_path)
    result = mclv.train(digits, 9, epochs=4, seed=7, validation=mclv.datasets.load("digits", split="validation"), **settings)
    theirs = mclv.load(tmp_path / "run" / "model.safetensors")
    assert same_bits(result.model, theirs)
    of_file = theirs.provenance["settings"]["train"]
    assert result.settings == {name.replace("-", "_"): value for name, value in of_file.items()}
    assert same_bits(result.model, mclv.train(digits, **result.settings).model)
    best = mclv.load(tmp_path / "run" / "best.safetensors")
    assert same_bits(result.best_model, best)
    assert theirs.provenance["history"]["train_log_likelihood"] == result.history[-1]["train_log_likelihood"]


@pytest.mark.parametrize(("snapshots", "epochs"), [("log", [1, 2]), ([3, 0], [0, 3]), (np.array([1, 3]), [1, 3]), (2, [2])])
def test_snapshots_are_the_models_of_their_epochs(bits, snapshots, epochs):
    models = {}
    result = mclv.train(bits, 5, epochs=3, seed=2, snapshots=snapshots, callback=lambda m, rbm: models.update({m["epoch"]: rbm}))
    assert list(result.snapshots) == epochs
    for epoch, rbm in result.snapshots.items():
        assert rbm.provenance["history"]["epoch"] == epoch
        assert epoch == 0 or same_bits(rbm, models[epoch])
    assert same_bits(result.model, models[3])
    assert mclv.train(bits, 5, epochs=1).snapshots == {}


def test_tempered_training_counts_exchanges(bits):
    result = mclv.train(bits, 12, epochs=3, seed=2, gradient="tempered", n_chains=16, n_rungs=4)
    tempering = result.history[-1]["tempering"]
    assert 0 < tempering["swap_rate_min"] <= tempering["swap_rate_mean"] <= 1
    assert tempering["round_trips"] >= 0 and 0 <= tempering["renewed"] <= 1


def test_threads_and_watching_do_not_change_the_model(bits):
    runs = [mclv.train(bits, 8, epochs=3, seed=2, n_jobs=n, watch=watch).model for n, watch in ((1, True), (2, False), (3, True))]
    assert same_bits(runs[0], runs[1]) and same_bits(runs[0], runs[2])
    assert not same_bits(runs[0], mclv.train(bits, 8, epochs=3, seed=3).model)


def test_weights_count_rows(bits):
    twice = np.ones(len(bits), dtype=int)
    twice[:100] = 0
    weighted = mclv.train(bits, 4, weights=twice, epochs=200, gradient="exact", seed=1)
    left_out = mclv.train(bits[100:], 4, epochs=300, gradient="exact", seed=1)
    a, b = (float(mclv.log_likelihood(r, bits[100:])) for r in (weighted, left_out))
    assert abs(a - b) < 0.2
    with pytest.raises(ValueError, match="one per row"):
        mclv.train(bits, 4, weights=[1.0], epochs=1)


def test_training_goes_on_from_a_model(bits):
    first = mclv.train(bits, 6, epochs=5, seed=1)
    for init in (first, first.model, mclv.BernoulliRBM(6, n_iter=1, random_state=0).fit(bits)):
        still = mclv.train(bits, init=init, epochs=1, learning_rate=1e-12, seed=2, watch=False)
        model = init if isinstance(init, mclv.RBM) else mclv.from_sklearn(init)
        assert np.abs(still.model.weights - model.weights).max() < 1e-6 and still.settings["n_hidden"] == 6
    second = mclv.train(bits, init=first, epochs=5, seed=2)
    assert same_bits(second.model, mclv.train(bits, 6, init=first.model, epochs=5, seed=2).model)
    assert not same_bits(second.model, mclv.train(bits, 6, epochs=5, seed=2).model)
    with pytest.raises(SettingError, match="n_hidden = 7 is not allowed: the model of init has 6"):
        mclv.train(bits, 7, init=first)
    with pytest.raises(ValueError, match="expected 64, got 60"):
        mclv.train(bits[:, :60], init=first)
    with pytest.raises(SettingError, match="choose `data` or `paper`"):
        mclv.train(bits, init="date")
    with pytest.raises(TypeError, match="is not a model"):
        mclv.train(bits, init=3)


def test_a_run_folder_is_that_of_the_command_line(cli, bits, tmp_path):
    folder = tmp_path / "run"
    result = mclv.train(bits, 5, epochs=3, seed=2, snapshots=[0, 2], output=folder)
    assert mclv.load(folder / "model.safetensors") == result.model and list(result.snapshots) == [0, 2]
    assert same_bits(result.snapshots[2], mclv.train(bits, 5, epochs=3, seed=2, snapshots=[0, 2]).snapshots[2])
    cli("report", folder, cwd=tmp_path)
    assert (folder / "report.html").exists()
    with pytest.raises(SettingError, match="it holds a run already"):
        mclv.train(bits, 5, epochs=3, output=str(folder))


def test_the_history_is_a_frame_a_plot_and_a_table(bits):
    pandas = pytest.importorskip("pandas")
    result = mclv.train(bits, 5, epochs=4, eval_every=2, seed=1, gradient="lvs", validation=bits[:50])
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame) and frame.index.name == "epoch" and list(frame.index) == [m["epoch"] for m in result.history]
    last = result.history[-1]
    assert frame["log_z_value"].iloc[-1] == last["log_z"]["value"] and frame["tours_n_started"].iloc[-1] == last["tours"]["n_started"]
    assert frame["train_log_likelihood"].notna().tolist() == ["train_log_likelihood" in m for m in result.history]
    table = result._repr_html_()
    assert table.startswith("<table>") and f"{last['train_log_likelihood']:.3f}" in table and "exact" in table
    result.warnings.append("<script>")
    assert "<script>" not in result._repr_html_()
    pyplot = pytest.importorskip("matplotlib")
    pyplot.use("Agg")
    axes = result.plot()
    assert [line.get_label() for line in axes.get_lines()] == ["train log likelihood", "validation log likelihood"]
    epochs, values = result.curve("validation_log_likelihood")
    assert np.array_equal(axes.get_lines()[1].get_ydata(), values) and axes.get_ylabel() == "nats per row"
    assert result.plot("weight_rms", ax=axes) is axes and len(axes.get_lines()) == 3
    with pytest.raises(SettingError, match="there is no metric 'loss'"):
        result.plot("loss")
    unwatched = mclv.train(bits, 5, epochs=1, watch=False)
    assert unwatched.plot().get_lines() == [] or len(unwatched.plot().get_lines()) == 0
    assert "log-likelihood" not in unwatched._repr_html_()


@pytest.mark.parametrize(("settings", "n_chains"), [({"gradient": "pcd", "n_chains": 50}, 50), ({"gradient": "cd"}, None), ({"gradient": "exact"}, None)])
def test_chains_are_those_of_the_end(bits, settings, n_chains):
    chains = mclv.train(bits, 5, epochs=2, seed=1, **settings).chains
    assert chains is None if n_chains is None else chains.shape == (n_chains, 5) and set(np.unique(chains)) == {0, 1}


def test_seeds_may_be_generators(bits):
    models = [mclv.train(bits, 4, epochs=1, seed=np.random.default_rng(seed), watch=False).model for seed in (1, 1, 2)]
    assert same_bits(models[0], models[1]) and not same_bits(models[0], models[2])


def test_callbacks_see_each_epoch_and_can_stop(bits):
    seen = []

    def callback(metrics, model):
        seen.append((metrics["epoch"], model))
        return metrics["epoch"] == 3

    result = mclv.train(bits, 5, epochs=50, callback=callback, seed=1)
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert result.outcome == "interrupted" and [m["epoch"] for m in result.history] == [0, 1, 2, 3]
    assert seen[-1][1] == result.model
    straight = mclv.train(bits, 5, epochs=50, seed=1, callback=lambda m, _: m["epoch"] == 3)
    assert same_bits(result.model, straight.model)


def test_no_callback_is_called_after_one_that_asks_to_stop(bits):
    """Epochs are short here, so that the next one would begin at once."""
    for _ in range(100):
        epochs = []

        def callback(metrics, _model):
            epochs.append(metrics["epoch"])
            raise KeyboardInterrupt

        assert mclv.train(bits[:2], 1, epochs=10**6, watch=False, callback=callback).outcome == "interrupted"
        assert epochs == [1]


def test_errors_of_callbacks_come_through(bits):
    def callback(_metrics, _model):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        mclv.train(bits, 5, epochs=50, callback=callback)


def interrupt_after(seconds):
    # Programs that a script starts in the background are born deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_ctrl_c_returns_promptly_with_a_model(bits):
    begun = time.monotonic()
    interrupt_after(0.5)
    result = mclv.train(bits, 200, epochs=10**6, watch=False)
    assert time.monotonic() - begun < 10
    assert result.outcome == "interrupted" and np.isfinite(result.model.weights).all()


def test_ctrl_c_in_fit_leaves_a_fitted_estimator(bits):
    rbm = pytest.importorskip("mclv._sklearn").BernoulliRBM(200, n_iter=10**6, random_state=1)
    interrupt_after(0.5)
    with pytest.raises(KeyboardInterrupt):
        rbm.fit(bits)
    assert rbm.transform(bits).shape == (300, 200)


def test_ctrl_c_ends_an_enumeration():
    rng = np.random.default_rng(1)
    large = mclv.RBM(rng.normal(size=(200, 34)), np.zeros(200), np.zeros(34))
    interrupt_after(0.5)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        mclv.log_partition(large, "exact", time_limit=1e6)
    assert time.monotonic() - begun < 10


def test_python_lives_on_while_training_goes_on(bits):
    """Another Python thread must be able to run: the interpreter lock is released."""
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(None)

    thread = threading.Thread(target=tick)
    thread.start()
    mclv.train(bits, 200, epochs=10**6, watch=False, callback=lambda m, _: m["seconds"] > 0.5)
    stop.set()
    thread.join()
    assert len(ticks) > 10


def test_divergence_keeps_the_model_of_the_epoch_before(bits):
    with pytest.warns(RuntimeWarning, match="diverged") as caught:
        result = mclv.train(bits, 5, epochs=20, learning_rate=1e9, schedule="constant", watch=False)
    assert result.outcome == "diverged" and np.isfinite(result.model.weights).all()
    assert "clip=1" in str(caught[0].message)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"batch_size": 0}, "batch_size = 0 is not allowed"),
        ({"gradient": "cdk"}, "choose `cd`, `pcd`, `lvs`, `tempered`, `ucd` or `exact`; did you mean `cd`"),
        ({"gradient": "cd", "unfinished": "keep"}, 'unfinished cannot be used with gradient="cd"'),
        ({"schedule": "steep"}, "steep"),
        ({"epochs": 0}, "epochs = 0 is not allowed: .* `auto`"),
        ({"epochs": "many"}, "epochs = 'many' is not allowed: give a number, or `auto`"),
        ({"batch_size": 2.5}, "batch_size = 2.5 is not allowed: give a whole number that is not negative"),
        ({"batch_size": -1}, "batch_size = -1 is not allowed: give a whole number that is not negative"),
        ({"epochs": -1}, "epochs = -1 is not allowed: give a whole number that is not negative"),
        ({"epochs": 2**70}, "epochs = 1180591620717411303424 is not allowed"),
        ({"k": 2**40}, "k = 1099511627776 is not allowed"),
        ({"clip": object()}, "clip = <object object at .* is not allowed"),
        ({"centred": "yes"}, "centred = 'yes' is not allowed"),
        ({"clip": 0.0}, "clip = 0 is not allowed: .* `off`"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"momentum": 0.1, "optimizer": "adam"}, 'momentum cannot be used with optimizer="adam"'),
    ],
)
def test_settings_are_checked(bits, settings, match):
    with pytest.raises(SettingError, match=match):
        mclv.train(bits, 4, **settings)


def test_unknown_settings_are_refused(bits):
    with pytest.raises(TypeError, match="unknown setting 'epoch_count'"):
        mclv.train(bits, 4, epoch_count=3)
    with pytest.raises(TypeError, match="unknown setting 'epoch'; did you mean 'epochs'"):
        mclv.train(bits, 4, epoch=3)


def test_numbers_of_numpy_and_none_are_settings_too(bits):
    ours = mclv.train(bits, np.int64(4), epochs=np.int32(2), learning_rate=np.float32(0.5), centred=np.bool_(True), seed=np.uint8(3))
    assert same_bits(ours.model, mclv.train(bits, 4, epochs=2, learning_rate=0.5, clip=None, seed=3).model)


@pytest.mark.parametrize("progress", [True, "tqdm", "rich"])
def test_the_bar_is_shown(bits, capsys, progress):
    mclv.train(bits, 4, epochs=3, progress=progress)
    shown = capsys.readouterr().err
    assert "training" in shown and "log-likelihood -" in shown
    with pytest.raises(SettingError, match="progress = 'dots' is not allowed"):
        mclv.train(bits, 4, progress="dots")


def test_forked_processes_can_train(bits):
    """Threads do not survive a fork; a child that counted on them would wait for ever."""
    import multiprocessing

    mclv.train(bits, 4, epochs=1)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        model = pool.apply_async(_train_small, (bits,)).get(timeout=60)
    assert same_bits(model, _train_small(bits))


def _train_small(rows):
    return mclv.train(rows, 4, epochs=1, seed=5).model
