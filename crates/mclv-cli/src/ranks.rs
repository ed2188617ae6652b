//! Joins the processes that `mpirun` or `srun` has started into one team.

/// Environment variables in which launchers give the number of processes.
const LAUNCHERS: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// The number of processes that a launcher has started; `None` without a launcher.
fn n_started() -> Option<usize> {
    LAUNCHERS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Runs a command, together with the other processes if there are any. Returns the exit code.
#[cfg(not(feature = "mpi"))]
pub(crate) fn run(command: impl Fn() -> u8) -> u8 {
    match n_started() {
        Some(n) if n > 1 => {
            // Every process prints this, because without MPI none knows whether it is the first.
            crate::output::tell(&format!(
                "error: an MPI launcher has started {n} processes, but this program was built without MPI, so each \
                 process would do the same work. Build it with `cargo build --release --features mpi` (this needs \
                 Open MPI or MPICH, and libclang), or start one process"
            ));
            crate::FAILURE
        }
        _ => command(),
    }
}

#[cfg(feature = "mpi")]
pub(crate) use with_mpi::run;

#[cfg(feature = "mpi")]
mod with_mpi {
    use mclv::team::{self, Team};
    use mpi::Threading;
    use mpi::collective::CommunicatorCollectives;
    use mpi::datatype::PartitionMut;
    use mpi::topology::{Communicator, SimpleCommunicator};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Bytes that are sent together with the length of a message.
    const AT_ONCE: usize = 56;
    /// MPI counts bytes in 31 bits.
    const MOST: usize = 1 << 30;

    static N_EXCHANGES: AtomicU64 = AtomicU64::new(0);
    static N_BYTES: AtomicU64 = AtomicU64::new(0);

    /// Runs a command, together with the other processes if there are any. Returns the exit code.
    pub(crate) fn run(command: impl Fn() -> u8) -> u8 {
        let Some(n_started) = super::n_started() else { return command() };
        // Training runs in threads of the pool: one at a time, but not always the first thread.
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized) else {
            crate::output::tell("error: MPI is already running");
            return crate::FAILURE;
        };
        if threading < Threading::Serialized {
            crate::output::tell(
                "error: this MPI cannot be used from several threads (MPI_THREAD_SERIALIZED)",
            );
            universe.world().abort(crate::FAILURE.into());
        }
        let panicked = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            panicked(info);
            SimpleCommunicator::world().abort(101);
        }));
        let world = universe.world();
        let world = World { rank: world.rank() as usize, size: world.size() as usize };
        if world.size != n_started {
            crate::output::tell(&format!(
                "error: the launcher has started {n_started} processes, but MPI knows only {}; use the launcher of \
                 the MPI that this program was built with (srun: --mpi=pmix or --mpi=pmi2)",
                world.size
            ));
            SimpleCommunicator::world().abort(crate::FAILURE.into());
        }
        let code = team::enter(Arc::new(world), &command);
        tracing::info!(
            "rank {} of {}: {} exchanges, {} bytes sent",
            world.rank,
            world.size,
            N_EXCHANGES.load(Ordering::Relaxed),
            N_BYTES.load(Ordering::Relaxed)
        );
        if code == crate::FAILURE {
            // Other ranks may be waiting for this one.
            SimpleCommunicator::world().abort(code.into());
        }
        code
    }

    #[derive(Clone, Copy)]
    struct World {
        rank: usize,
        size: usize,
    }

    impl Team for World {
        fn rank(&self) -> usize {
            self.rank
        }

        fn size(&self) -> usize {
            self.size
        }

        fn gather(&self, mine: &[u8]) -> Vec<Vec<u8>> {
            N_EXCHANGES.fetch_add(1, Ordering::Relaxed);
            N_BYTES.fetch_add(mine.len() as u64, Ordering::Relaxed);
            let world = SimpleCommunicator::world();
            let mut head = [0; 8 + AT_ONCE];
            head[..8].copy_from_slice(&(mine.len() as u64).to_ne_bytes());
            let n = mine.len().min(AT_ONCE);
            head[8..8 + n].copy_from_slice(&mine[..n]);
            let mut heads = vec![0; head.len() * self.size];
            world.all_gather_into(&head[..], &mut heads[..]);
            let mut lens = Vec::with_capacity(self.size);
            let mut all = Vec::with_capacity(self.size);
            for head in heads.chunks_exact(head.len()) {
                let (len, bytes) = head.split_at(8);
                let len = u64::from_ne_bytes(len.try_into().expect("8 bytes")) as usize;
                let mut first = Vec::with_capacity(len);
                first.extend_from_slice(&bytes[..len.min(AT_ONCE)]);
                lens.push(len);
                all.push(first);
            }
            let longest = lens.iter().copied().max().unwrap_or(0);
            let step = MOST / self.size;
            for first in (AT_ONCE..longest).step_by(step) {
                let part = |len: usize| len.min(first)..len.min(first + step);
                let counts: Vec<i32> = lens.iter().map(|&len| part(len).len() as i32).collect();
                let offsets: Vec<i32> = counts
                    .iter()
                    .scan(0, |at, n| {
                        *at += n;
                        Some(*at - n)
                    })
                    .collect();
                let mut bytes = vec![0; counts.iter().map(|&n| n as usize).sum()];
                let mut parts = PartitionMut::new(&mut bytes[..], &counts[..], &offsets[..]);
                world.all_gather_varcount_into(&mine[part(mine.len())], &mut parts);
                for ((all, &n), &at) in all.iter_mut().zip(&counts).zip(&offsets) {
                    all.extend_from_slice(&bytes[at as usize..(at + n) as usize]);
                }
            }
            all
        }
    }
}
