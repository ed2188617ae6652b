"""Calls from callbacks, threads and forked processes end. Each runs in a process of its own with a limit, so that a hang fails."""

import os
import signal
import subprocess
import sys
import time

import pytest

#: Seconds. The code takes one or two; a busy machine may take ten times as long.
LIMIT = 60

BEGIN = """
import os, signal, threading, time
import mclv, numpy as np
bits = np.random.default_rng(0).integers(0, 2, (200, 20)).astype(np.uint8)
model = mclv.RBM(np.zeros((20, 5)), np.zeros(20), np.zeros(5))
"""

ENDLESS = "epochs=10**6, watch=False"


def environment(**variables):
    names = ("MCLV_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS")
    return {name: value for name, value in os.environ.items() if name not in names} | variables


def run(code, **variables):
    """The last line that the code prints."""
    done = subprocess.run([sys.executable, "-c", BEGIN + code], env=environment(**variables), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1] if done.stdout else ""


#: Ways to ask for one thread: an argument, and variables such as joblib sets in its workers.
ONE_THREAD = pytest.mark.parametrize(
    ("jobs", "variables"),
    [("n_jobs=1", {}), ("n_jobs=None", {"OMP_NUM_THREADS": "1"}), ("n_jobs=None", {"RAYON_NUM_THREADS": "1"})],
    ids=["n_jobs", "OMP_NUM_THREADS", "RAYON_NUM_THREADS"],
)


@ONE_THREAD
def test_callbacks_use_models_with_one_thread(jobs, variables):
    code = f"""
seen = []
def callback(metrics, rbm):
    mean = rbm.free_energy(bits, {jobs}).mean()
    mclv.log_partition(rbm, {jobs})
    rbm.sample(5, {jobs})
    seen.append(mean)
mclv.train(bits, 5, epochs=3, callback=callback, {jobs})
estimator = mclv.BernoulliRBM(5, n_iter=3, verbose=1, callback=callback, {jobs}).fit(bits)
print(len(seen))
"""
    assert run(code, **variables) == "6"


@ONE_THREAD
def test_trainings_nest(jobs, variables):
    code = f"""
depths = []
def train(depth):
    def callback(metrics, rbm):
        depths.append(depth)
        if depth < 3:
            train(depth + 1)
    return mclv.train(bits, 4, epochs=2, seed=depth, callback=callback, {jobs})
outer = train(0)
alone = mclv.train(bits, 4, epochs=2, seed=0, {jobs})
print(len(depths), outer.model == alone.model)
"""
    assert run(code, **variables) == "30 True"


def test_two_trainings_go_on_at_once():
    """Each waits in its first callback for the other one to have reached its own."""
    code = f"""
meet = threading.Barrier(2, timeout=30)
results = {{}}
def callback(metrics, rbm):
    if metrics["epoch"] == 1:
        meet.wait()
    return metrics["epoch"] == 3
def train(seed):
    results[seed] = mclv.train(bits, 5, seed=seed, callback=callback, n_jobs=1, {ENDLESS}).model
threads = [threading.Thread(target=train, args=(seed,)) for seed in (1, 2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
alone = [mclv.train(bits, 5, seed=seed, n_jobs=1, callback=lambda m, _: m["epoch"] == 3, {ENDLESS}).model for seed in (1, 2)]
print([results[seed] == model for seed, model in zip((1, 2), alone)])
"""
    assert run(code) == "[True, True]"


def test_other_threads_do_not_wait_for_a_training():
    code = f"""
stop = threading.Event()
thread = threading.Thread(target=lambda: mclv.train(bits, 5, n_jobs=1, callback=lambda m, _: stop.is_set(), {ENDLESS}))
thread.start()
for _ in range(20):
    model.free_energy(bits, n_jobs=1)
    mclv.log_partition(model, n_jobs=1)
assert thread.is_alive()
stop.set()
thread.join()
print("ended")
"""
    assert run(code) == "ended"


def interrupted(code):
    """Send Ctrl-C when the code prints `now`; return the rest of what it prints."""
    # Programs that a script starts in the background are born deaf to Ctrl-C.
    hear = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", hear + BEGIN + code], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first == "now\n", first + process.stdout.read()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert process.returncode == 0, out
    return out.splitlines()[-1]


@pytest.mark.parametrize(
    "callback",
    ["if metrics['epoch'] == 1: print('now')", "model.free_energy(bits, n_jobs=1)\n    if metrics['epoch'] == 1: print('now')",
     "print('now')\n    time.sleep(1000)", f"mclv.train(bits, 5, n_jobs=1, callback=lambda m, _: print('now') if m['epoch'] == 1 else None, {ENDLESS})\n    raise KeyboardInterrupt"],
    ids=["training", "call in a callback", "callback that sleeps", "training in a callback"],
)  # fmt: skip
def test_ctrl_c_ends(callback):
    code = f"""
def callback(metrics, rbm):
    {callback}
result = mclv.train(bits, 5, n_jobs=1, callback=callback, {ENDLESS})
print(result.outcome, bool(np.isfinite(result.model.weights).all()))
"""
    assert interrupted(code) == "interrupted True"


@pytest.mark.parametrize(
    "call",
    ["rbm.pseudo_log_likelihood(np.broadcast_to(rows[:1], (10**6, 400)))", "rbm.sample(2000, method='gibbs', burn_in=10**8)", "rbm.sample(20, method='tempering', burn_in=10**8)",
     "mclv.log_partition(rbm, 'ais', n_betas=10**7, n_chains=10**4)", "mclv.tours(rbm, mclv.StoppingSet([[0] * 300]), 10**6)",
     "mclv.BernoulliRBM(300, n_iter=1).partial_fit(np.broadcast_to(rows[:1], (10**7, 400)))"],
    ids=["rows", "gibbs", "tempering", "log Z", "tours", "partial_fit"],
)  # fmt: skip
def test_ctrl_c_ends_long_calls(call):
    code = f"""
rng = np.random.default_rng(0)
rbm = mclv.RBM(rng.normal(size=(400, 300)), np.zeros(400), np.zeros(300))
rows = rng.integers(0, 2, (3, 400)).astype(np.uint8)
mclv.BernoulliRBM  # imports scikit-learn
print("now")
try:
    {call}
except KeyboardInterrupt:
    print("interrupted")
"""
    assert interrupted(code) == "interrupted"


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes_train(method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        BEGIN
        + f"""
import multiprocessing
def work(seed):
    feed = mclv.BernoulliRBM(4, random_state=seed, n_jobs=1).partial_fit(bits)
    feed.partial_fit(bits)
    return mclv.train(bits, 4, epochs=2, seed=seed, callback=lambda m, rbm: rbm.free_energy(bits).sum() > 1e9).model
def fork_in_a_callback(metrics, rbm):
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        assert pool.apply_async(work, (1,)).get(timeout=40) == first
if __name__ == "__main__":
    first = work(1)
    # Pools of several sizes have been used, and one is in use.
    for n in (1, 2, 3, 1, 7, 8, 9):
        model.free_energy(bits, n_jobs=n)
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        assert pool.map_async(work, [1, 2, 1]).get(timeout=40)[2] == first
    mclv.train(bits, 4, epochs=1, callback=fork_in_a_callback)
    stop = threading.Event()
    busy = threading.Thread(target=lambda: mclv.train(bits, 9, callback=lambda m, _: stop.is_set(), {ENDLESS}))
    busy.start()
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        assert pool.map_async(work, [1, 2, 1]).get(timeout=40)[0] == first
    stop.set()
    busy.join()
    print("ended")
"""
    )
    done = subprocess.run([sys.executable, str(program)], env=environment(), capture_output=True, text=True, timeout=2 * LIMIT)
    assert done.returncode == 0 and done.stdout == "ended\n", done.stdout + done.stderr


def test_a_program_ends_while_a_daemon_thread_trains():
    code = f"""
threading.Thread(target=lambda: mclv.train(bits, 5, n_jobs=1, {ENDLESS}), daemon=True).start()
time.sleep(0.3)
print("ended")
"""
    done = subprocess.run([sys.executable, "-c", BEGIN + code], env=environment(), capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "ended\n" and done.returncode == 0, (done.returncode, done.stderr)


def test_a_very_large_number_of_threads_starts_few():
    code = """
model.free_energy(bits, n_jobs=10**6)
print(len(os.listdir("/proc/self/task")) < 600 if os.path.isdir("/proc/self/task") else True)
"""
    assert run(code) == "True"
