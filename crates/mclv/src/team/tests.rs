//! Test teams with ranks as threads: each rank computes the same as one rank alone.

use super::*;
use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::{self, DataSpec, RealRows, Rows, Split};
use crate::model::tests::random_rbm;
use crate::numpy::to_npy;
use crate::partition::{self, AisSettings, BarSettings};
use crate::progress::Silent;
use crate::rng::{Purpose, stream};
use crate::sample::{SampleSettings, Start, sample};
use crate::settings::{EstimatorSettings, LvsSettings, Rule, Settings, Starts, TourLength, Unfinished};
use crate::tour::{PilotSettings, StoppingSet, TourEngine, TourSettings};
use crate::train::trainer::Trainer;
use crate::train::{Checkpoints, Training};
use crate::{Rbm, Result};
use std::sync::{Barrier, Mutex};

struct Thread {
    rank: usize,
    size: usize,
    table: Arc<(Mutex<Vec<Vec<u8>>>, Barrier)>,
}

impl Team for Thread {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.size
    }
    fn gather(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        let (places, barrier) = &*self.table;
        places.lock().unwrap()[self.rank] = mine.into();
        barrier.wait();
        let all = places.lock().unwrap().clone();
        barrier.wait();
        all
    }
}

/// Returns the result of `work` on each of `size` ranks.
pub(crate) fn on_ranks<R: Send>(size: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let table = Arc::new((Mutex::new(vec![Vec::new(); size]), Barrier::new(size)));
    std::thread::scope(|scope| {
        let rank = |rank: usize| {
            let (team, work) = (Thread { rank, size, table: table.clone() }, &work);
            // A pool of its own: ranks that wait must not hold the threads of others.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1 + rank % 2).build().unwrap();
            scope.spawn(move || pool.install(|| enter(Arc::new(team), || work(rank))))
        };
        let ranks: Vec<_> = (0..size).map(rank).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// All ranks, for any number of them, get the result of one rank alone.
fn check_same<R: Send + PartialEq + std::fmt::Debug>(what: &str, work: impl Fn() -> R + Sync) {
    let one = work();
    for size in [1, 2, 3, 5] {
        for (rank, several) in on_ranks(size, |_| work()).into_iter().enumerate() {
            assert!(several == one, "{what}: rank {rank} of {size}: {several:?} instead of {one:?}");
        }
    }
}

#[test]
fn blocks_come_in_order_and_each_is_made_once() {
    for (size, n) in [(1, 3), (2, 0), (2, 7), (3, 2), (4, 100)] {
        let made = Mutex::new(Vec::new());
        let all = on_ranks(size, |_| {
            share_all(n, |blocks| {
                made.lock().unwrap().extend(blocks.clone());
                // As many values as a block likes.
                blocks.flat_map(|b| vec![b as u64; b % 3]).collect()
            })
        });
        let expected: Vec<u64> = (0..n).flat_map(|b| vec![b as u64; b % 3]).collect();
        assert!(all.iter().all(|values| *values == expected));
        let mut made = made.into_inner().unwrap();
        made.sort_unstable();
        assert_eq!(made, (0..n).collect::<Vec<_>>());
    }
}

#[test]
fn chunks_are_filled_and_exchanged_also_where_the_last_is_short() {
    for size in [1, 2, 3] {
        let filled = on_ranks(size, |rank| {
            let mut values = vec![rank as f32; 23];
            fill(&mut values, 5, |first, mine| {
                for (k, chunk) in mine.chunks_mut(5).enumerate() {
                    chunk.fill((first + k) as f32);
                }
            });
            values
        });
        let expected: Vec<f32> = (0..23).map(|k| (k / 5) as f32).collect();
        assert!(filled.iter().all(|values| *values == expected), "{filled:?}");
    }
}

#[test]
fn who_fails_stops_all_and_says_why() {
    let failing = |rank: usize| -> Result<Vec<u64>> {
        share(4, |_| match rank {
            1 => Err(Error::Empty { what: "rank 1's share".into(), cure: "none" }),
            _ => Ok(vec![0]),
        })
    };
    let errors: Vec<String> = on_ranks(3, |rank| failing(rank).unwrap_err().to_string());
    assert!(errors.iter().all(|e| e.contains("rank 1's share")), "{errors:?}");
    assert!(errors[0].starts_with("rank 1: "), "{errors:?}");
    let cancelled =
        on_ranks(3, |rank| share(4, |_| if rank == 2 { Err(Error::Cancelled) } else { Ok(vec![0u8]) }));
    assert!(cancelled.iter().all(|e| matches!(e, Err(Error::Cancelled))));
    let read = on_ranks(2, |rank| {
        together(if rank == 1 { Err(Error::malformed("a.npy", "cut off")) } else { Ok(()) })
    });
    assert!(read.iter().all(Result::is_err));
    assert_eq!(on_ranks(3, |rank| any(rank == 2)), [true; 3]);
    assert_eq!(on_ranks(3, |_| any(false)), [false; 3]);
    assert_eq!(on_ranks(3, |rank| of_first(rank as f64)), [0.0; 3]);
    assert_eq!(on_ranks(3, |_| is_first()), [true, false, false]);
    // Inside `alone` and `share_all`, a rank sees a team of size 1.
    assert_eq!(
        on_ranks(2, |_| (alone(size), share_all(2, |_| vec![size()]))),
        [(1, vec![1, 1]), (1, vec![1, 1])]
    );
}

/// Rows enough for several blocks in every minibatch.
fn rows(n: usize, n_columns: usize, grey: bool) -> Rows {
    let mut rng = stream(5, Purpose::SelfTest, 1).reader();
    if grey {
        let values = (0..n * n_columns).map(|_| (rng.next_u32() % 3) as f32 / 2.0).collect();
        return Rows::Reals(RealRows::new(n_columns, values));
    }
    let mut bits = BitRows::zeros(n, n_columns);
    for r in 0..n {
        (0..n_columns).for_each(|i| bits.set(r, i, rng.next_u32() % 4 < 1 + (r % 3) as u32));
    }
    Rows::Bits(bits)
}

fn bits_of(rbm: &Rbm) -> Vec<u32> {
    let all = rbm.weights().into_iter().chain(rbm.visible_bias().to_vec()).chain(rbm.hidden_bias().to_vec());
    all.map(f32::to_bits).collect()
}

#[test]
fn training_does_not_depend_on_ranks() {
    let sampled = VisibleChain::Sampled;
    let lvs = |unfinished, starts, visible| {
        EstimatorSettings::Lvs(LvsSettings {
            k: TourLength::Steps(3),
            n_tours: Some(150),
            unfinished,
            starts,
            visible,
            ..LvsSettings::default()
        })
    };
    let gradients = [
        EstimatorSettings::Cd { k: 2, visible: sampled },
        EstimatorSettings::Pcd { k: 2, n_chains: Some(300), visible: VisibleChain::MeanField },
        EstimatorSettings::Pcd { k: 1, n_chains: Some(1000), visible: sampled },
        lvs(Unfinished::Carry, Starts::Metropolis, sampled),
        lvs(Unfinished::Drop, Starts::Weighted, VisibleChain::MeanField),
        lvs(Unfinished::Keep, Starts::Fresh, sampled),
        EstimatorSettings::Exact,
        EstimatorSettings::Tempered { k: 2, n_chains: 30, n_rungs: 9 },
        EstimatorSettings::Ucd { k: 1, max_meeting: 70 },
    ];
    for (k, gradient) in gradients.into_iter().enumerate() {
        let data = rows(2300, 130, k % 2 == 1);
        check_same(&format!("{gradient:?}"), || {
            let settings = Settings {
                n_hidden: Some(if gradient == EstimatorSettings::Exact { 4 } else { 70 }),
                // With 1,100 rows CD and the second PCD have pairs enough for ranks to share the
                // sums.
                batch_size: Some(if k % 2 == 0 { 1100 } else { 200 }),
                epochs: Some(2.into()),
                learning_rate: Some(0.4),
                optimizer: Some(if k % 3 == 0 { Rule::Adam } else { Rule::Sgd }),
                clip: Some((k == 2).then_some(1.0).into()),
                ..Settings::from(&gradient)
            };
            let settings = settings.check(data.n_rows()).unwrap();
            let mut trainer = Trainer::new(settings, &data, None).unwrap();
            while !trainer.is_finished() {
                trainer.epoch(&data, &Silent).unwrap();
            }
            let info = format!("{:?}", trainer.take_info());
            (bits_of(trainer.rbm()), info, trainer.chains(), trainer.gradient_norm().to_bits())
        });
    }
}

#[test]
fn log_z_and_tours_and_samples_do_not_depend_on_ranks() {
    let rbm = random_rbm(40, 16, 0.4, 9);
    let data = rows(300, 40, false);
    check_same("exact", || partition::exact(&rbm, &Default::default(), &Silent).unwrap().value.to_bits());
    check_same("set and tours", || {
        let set = StoppingSet::draw(&rbm, &data, &(0..300).collect::<Vec<_>>(), 2, 3, 0).unwrap();
        let engine = TourEngine::new(&rbm, &set).unwrap();
        let settings = TourSettings { n_tours: 700, max_length: Some(40), ..Default::default() };
        let tours = engine.run(&settings, &Silent).unwrap();
        (tours.as_slice().to_vec(), tours.n_steps(), engine.log_z_s().to_bits())
    });
    check_same("pilot", || {
        StoppingSet::from_pilot(
            &rbm,
            None,
            &PilotSettings { n_chains: 130, burn_in: 3, n_steps: 4, ..Default::default() },
        )
        .unwrap()
        .states()
        .words()
        .to_vec()
    });
    check_same("AIS", || {
        let settings = AisSettings { n_chains: 150, n_betas: 60, ..Default::default() };
        partition::ais(&rbm, &settings, &Silent).unwrap().value.to_bits()
    });
    check_same("BAR", || {
        let settings = BarSettings { n_ladders: 5, n_steps: 60, burn_in: 10, ..Default::default() };
        partition::bar(&rbm, &settings, &Silent).unwrap().log_z.value.to_bits()
    });
    check_same("samples", || {
        let settings = SampleSettings { n_samples: 200, burn_in: Some(7), means: true, ..Default::default() };
        let samples = sample(&rbm, &settings, Start::Bias, None, &Silent).unwrap();
        (samples.v, samples.means)
    });
    check_same("tempered samples", || {
        let method = Some(crate::sample::SampleMethod::Tempering);
        let settings = SampleSettings { n_samples: 50, method, burn_in: Some(70), means: true, seed: 5 };
        sample(&rbm, &settings, Start::Bias, None, &Silent)
            .map(|samples| (samples.v, samples.means, samples.ladders))
            .unwrap()
    });
    check_same("exact samples", || crate::sample::exact(&rbm, 300, 4, &Default::default(), &Silent).unwrap());
    check_same("rows", || {
        let pseudo = rbm.pseudo_log_likelihood(&data).unwrap();
        let (energy, features) = (rbm.free_energy(&data).unwrap(), rbm.mean_h_from_v(&data).unwrap());
        (pseudo, energy, features)
    });
}

#[test]
fn parcels_keep_every_bit() {
    type Everything = (Vec<(u32, Option<Vec<f64>>)>, (Vec<bool>, (Vec<f32>, usize)));
    let sent: Everything = (
        vec![(7, None), (8, Some(vec![f64::NEG_INFINITY, -0.0, 0.1]))],
        (vec![true, false], (vec![f32::MIN_POSITIVE / 3.0], usize::MAX)),
    );
    let mut bytes = vec![0xAA];
    sent.pack(&mut bytes);
    let mut rest = &bytes[1..];
    assert_eq!(Everything::unpack(&mut rest), sent);
    assert!(rest.is_empty());
}

#[test]
fn a_data_file_is_read_in_parts_and_what_goes_wrong_stops_all() {
    let dir = tempfile::tempdir().unwrap();
    let spec = |name: &str| {
        let source = dir.path().join(name).to_string_lossy().into_owned();
        DataSpec { source, split: Split::Train, seed: 7, ..DataSpec::default() }
    };
    let values: Vec<f32> = (0..70 * 5).map(|i| (i * i % 7) as f32 / 7.0).collect();
    let lines =
        values.chunks(5).map(|row| row.iter().map(f32::to_string).collect::<Vec<_>>().join(",") + "\n");
    std::fs::write(dir.path().join("rows.csv"), lines.collect::<String>()).unwrap();
    std::fs::write(dir.path().join("rows.npy"), to_npy(&[70, 5], &values)).unwrap();
    std::fs::write(dir.path().join("wrong.npy"), to_npy(&[70, 5], &vec![2.0f32; 350])).unwrap();
    for name in ["rows.csv", "rows.npy"] {
        check_same(name, || data::load(&spec(name), &Silent).unwrap());
    }
    // All ranks report the same error, and continue together. Each rank has a disk of its own.
    for disk in ["whole", "empty", "short"] {
        std::fs::create_dir(dir.path().join(disk)).unwrap();
    }
    std::fs::copy(dir.path().join("rows.npy"), dir.path().join("whole/x.npy")).unwrap();
    std::fs::write(dir.path().join("short/x.npy"), to_npy(&[7, 5], &values[..35])).unwrap();
    let outcomes = |name: &'static str, disk: &(dyn Fn(usize) -> &'static str + Sync)| {
        on_ranks(3, |rank| {
            let folder = Some(dir.path().join(disk(rank)));
            let spec = DataSpec { source: name.into(), folder, ..DataSpec::default() };
            let error = data::load(&spec, &Silent).unwrap_err();
            assert_eq!(share_all(3, |mine| mine.collect::<Vec<_>>()), [0, 1, 2]);
            error.to_string()
        })
    };
    for word in outcomes("x.npy", &|rank| if rank == 1 { "empty" } else { "whole" }) {
        assert!(word.contains("rank 1: cannot read x.npy"), "{word}");
    }
    for word in outcomes("x.npy", &|rank| if rank == 2 { "short" } else { "whole" }) {
        assert!(word.contains("for rank 2; all ranks must see the same file"), "{word}");
    }
    for word in outcomes("wrong.npy", &|_| ".") {
        assert!(word.contains("row 1"), "{word}");
    }
}

/// What ranks say that were not started alike: the same error on all of them.
fn refusals<R: Send>(size: usize, work: impl Fn(usize) -> Result<R> + Sync) -> String {
    let errors = on_ranks(size, |rank| work(rank).map(|_| ()).unwrap_err().to_string());
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    assert!(errors[0].contains("start all ranks with the same program, arguments and files"), "{errors:?}");
    errors[0].clone()
}

#[test]
fn ranks_that_know_other_facts_are_refused_with_what_differs() {
    let facts =
        |rate: f64| Facts::of_program().with("", &serde_json::json!({ "rate": rate, "a": [1], "s": "x" }));
    assert!(on_ranks(4, |_| agree(&facts(0.1))).iter().all(Result::is_ok));
    assert!(agree(&facts(0.1)).is_ok(), "without a team");
    let said = refusals(3, |rank| agree(&facts(if rank == 2 { 0.2 } else { 0.1 })));
    assert!(said.starts_with("rank 2 differs from rank 0: rate is 0.2, not 0.1; start"), "{said}");
    let version = |rank| Facts::default().with("version", if rank == 1 { "0.1.1" } else { "0.1.0" });
    assert!(refusals(2, |rank| agree(&version(rank))).contains("version is 0.1.1, not 0.1.0"));
    let said = refusals(2, |rank| agree(&if rank == 0 { facts(0.1).with("more", "y") } else { facts(0.1) }));
    assert!(said.contains("more is not given, not y"), "{said}");
    let long = |rank: usize| Facts::default().with("text", &"é".repeat(100 + rank));
    assert!(refusals(2, |rank| agree(&long(rank))).contains(&format!("text is {}…", "é".repeat(80))));
    let many = |rank: usize| (0..9).fold(Facts::default(), |facts, k| facts.with(&format!("f{k}"), &rank));
    assert!(refusals(2, |rank| agree(&many(rank))).contains("f2 is 1, not 0; 6 more differences"));
    // A rank of another version makes another exchange.
    let strange = on_ranks(2, |rank| match rank {
        0 => agree(&facts(0.1)).map_err(|error| error.to_string()),
        _ => {
            current().unwrap().gather(&[FINE, 0, 0]);
            Ok(())
        }
    });
    assert!(strange[0].as_ref().unwrap_err().contains("rank 1 differs from rank 0: it does other work"));
}

#[test]
fn training_begins_only_if_all_ranks_have_the_same_of_everything() {
    let (data, other) = (rows(100, 12, false), rows(100, 12, true));
    let settings = |seed| Settings {
        n_hidden: Some(3),
        epochs: Some(1.into()),
        seed: Some(seed),
        learning_rate: Some(0.1),
        ..Settings::default()
    };
    let weights = |w: f32| [vec![w], vec![1.0; 99]].concat();
    let (one, two) = (weights(1.0), weights(2.0));
    let models = [random_rbm(12, 3, 0.1, 1), random_rbm(12, 3, 0.1, 2)];
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("run");
    fn begin_at<'a>(place: &std::path::Path, training: Training<'a>, data: &'a Rows) -> Result<()> {
        training.in_folder(place).begin(data).map(|_| ())
    }
    type Begin<'a> = &'a (dyn Fn(usize) -> Result<()> + Sync);
    let cases: [(&str, Begin<'_>); 6] = [
        ("seed is 1, not 0", &|rank| begin_at(&place, Training::new(settings(rank as u64)), &data)),
        ("learning-rate is 0.2, not 0.1", &|rank| {
            let learning_rate = Some(0.1 * (1 + rank) as f64);
            begin_at(&place, Training::new(Settings { learning_rate, ..settings(0) }), &data)
        }),
        ("the content of training rows is", &|rank| {
            begin_at(&place, Training::new(settings(0)), if rank == 0 { &data } else { &other })
        }),
        ("the content of validation rows is", &|rank| {
            begin_at(
                &place,
                Training::new(settings(0)).validation(if rank == 0 { &data } else { &other }),
                &data,
            )
        }),
        ("the weights of training rows is", &|rank| {
            begin_at(
                &place,
                Training::new(settings(0)).weights(Some(if rank == 0 { &one } else { &two })),
                &data,
            )
        }),
        ("the model is", &|rank| {
            begin_at(&place, Training::new(settings(0)).from_model(models[rank].clone()), &data)
        }),
    ];
    for (what, begin) in cases {
        let said = refusals(2, begin);
        assert!(said.contains(what), "{said} does not say {what}");
        assert!(!place.exists(), "{what}: files were written before ranks agreed");
    }
    // A rank whose settings are wrong stops the others.
    let wrong = |rank: usize| Settings { batch_size: Some(if rank == 1 { 0 } else { 5 }), ..settings(0) };
    let ends =
        on_ranks(2, |rank| begin_at(&place, Training::new(wrong(rank)), &data).unwrap_err().to_string());
    assert!(ends[0].starts_with("rank 1: ") && ends[1].contains("batch-size"), "{ends:?}");
    assert!(on_ranks(2, |_| begin_at(&place, Training::new(settings(0)), &data)).iter().all(Result::is_ok));
    // Folders that differ, as on two machines without a shared file system.
    let places = [0, 1].map(|k| folder.path().join(format!("copy {k}")));
    for (k, place) in places.iter().enumerate() {
        let settings = Settings { epochs: Some(3.into()), ..settings(0) };
        let checkpoints = Checkpoints { every_epochs: 1, every_minutes: 0.0 };
        let training = Training::new(settings).in_folder(place).checkpoints(checkpoints);
        let mut session = training.begin(&data).unwrap();
        (0..=k).for_each(|_| drop(session.epoch().unwrap()));
    }
    let settings = Settings { epochs: Some(3.into()), ..settings(0) };
    let said = refusals(2, |rank| Training::new(settings.clone()).resume(&places[rank], &data).map(|_| ()));
    assert!(said.contains("the number of epochs made is 2, not 1"), "{said}");
}

/// Files of the same length and name that differ, as copies on the disks of two machines may.
#[test]
fn files_that_differ_between_ranks_are_refused() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let values = |k: usize| -> Vec<f32> { (0..20_000).map(|i| (i * (7 + k) % 11 / 6) as f32).collect() };
    for (k, folder) in folders.iter().enumerate() {
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("rows.npy"), to_npy(&[2000, 10], &values(k))).unwrap();
        let mut late = values(0);
        late[19_999] = k as f32;
        std::fs::write(at("late.npy"), to_npy(&[2000, 10], &late)).unwrap();
        let lines = values(k)
            .chunks(10)
            .map(|row| format!("{row:?}\n").replace(['[', ']', ' '], ""))
            .collect::<String>();
        std::fs::write(at("rows.csv"), lines).unwrap();
        let parts: String = (0..2000).map(|r| if (r + k) % 5 == 0 { "test\n" } else { "train\n" }).collect();
        std::fs::write(at("parts.txt"), parts).unwrap();
        std::fs::write(at("same.npy"), to_npy(&[2000, 10], &values(0))).unwrap();
        let rbm = random_rbm(10, 3, 0.3, k as u64);
        crate::ModelFile::new(rbm.clone()).save(at("model.npz")).unwrap();
        StoppingSet::new(&BitRows::pack(3, &[k as u8, 1, 0], |&x| x == 1))
            .save(&at("set.safetensors"))
            .unwrap();
        std::fs::write(at("mask.npy"), to_npy(&[10], &[k as f32; 10])).unwrap();
    }
    let spec = |rank: usize, source: &str| DataSpec {
        source: source.into(),
        folder: Some(folders[rank].path().into()),
        ..DataSpec::default()
    };
    for name in ["rows.npy", "late.npy", "rows.csv"] {
        let errors = on_ranks(2, |rank| data::load(&spec(rank, name), &Silent).unwrap_err().to_string());
        let expected = "has another content for rank 1 than for rank 0; all ranks must see the same file";
        assert!(errors.iter().all(|error| error.contains(expected) && error.contains(name)), "{errors:?}");
    }
    let with = |rank: usize, change: fn(&mut DataSpec, usize)| {
        let mut spec = spec(rank, "same.npy");
        change(&mut spec, rank);
        data::load(&spec, &Silent).map(|_| ())
    };
    on_ranks(2, |rank| with(rank, |_, _| ()).unwrap());
    assert!(
        refusals(2, |rank| with(rank, |spec, rank| spec.seed = rank as u64))
            .contains("data.seed is 1, not 0")
    );
    assert!(
        refusals(2, |rank| with(rank, |spec, _| spec.split_file = Some("parts.txt".into())))
            .contains("content of parts.txt")
    );
    let at = |rank: usize, name: &str| folders[rank].path().join(name);
    assert!(refusals(2, |rank| crate::ModelFile::load(at(rank, "model.npz"))).contains("the model of"));
    assert!(refusals(2, |rank| StoppingSet::load(&at(rank, "set.safetensors"))).contains("set.safetensors"));
    let known = |rank| crate::sample::Known::File(at(rank, "mask.npy"));
    assert!(refusals(2, |rank| known(rank).mask(10, None)).contains("mask.npy"));
}
