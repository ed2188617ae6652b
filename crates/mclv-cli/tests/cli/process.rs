//! Test the program among other processes: an interrupt stops it, and a closed pipe is no error.

use crate::support::Sandbox;

#[test]
fn it_is_no_error_if_nobody_reads_the_results() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    let runs: [&[&str]; 5] = [
        &["data", "list"],
        &["data", "list", "--json"],
        &["likelihood", "m.safetensors"],
        &["completions", "bash"],
        &["--help"],
    ];
    for args in runs {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = sandbox.command(args).stdout(writer).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_long_work_at_once_with_code_130() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let sandbox = Sandbox::new().with_model("m.safetensors", 40);
    let mut process = sandbox
        .command_heeding(&["logz", "m.safetensors", "--time-limit", "none", "-vv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The log says when work begins.
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("enumerating 2^40 states")).unwrap();
    let begun = Instant::now();
    let kill = format!("kill -INT {}", process.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let rest: Vec<String> = lines.collect();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(output.stdout.is_empty());
    assert_eq!(rest, ["error: log Z: interrupted"]);
}

/// `nohup` and scripts that start a command with `&` let it ignore signals.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_the_parent_ignores_stays_ignored() {
    use std::process::{Command, Stdio};

    let sandbox = Sandbox::new();
    let send = |id: u32, signal: &str| {
        let kill = format!("kill -{signal} {id}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    };
    let n_epochs = |folder: &str| {
        std::fs::read(sandbox.path(folder).join("metrics.jsonl"))
            .map_or(0, |text| text.split(|&b| b == b'\n').count())
    };
    for (ignored, sent, stops) in [
        ("HUP", "HUP", "TERM"),
        ("INT", "INT", "HUP"),
        ("TERM", "TERM", "HUP"),
        ("HUP INT TERM", "HUP", ""),
        ("", "HUP", ""),
    ] {
        let folder = format!("ignores {ignored}");
        let train = [
            "train",
            "bars-and-stripes:3",
            "--n-hidden",
            "2",
            "--epochs",
            "100000000",
            "--eval-every",
            "never",
        ];
        let mut program = sandbox.command_ignoring(ignored, &[&train[..], &["-o", &folder]].concat());
        let mut process = program.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let until = |process: &mut std::process::Child, n: usize| {
            while n_epochs(&folder) < n {
                assert!(process.try_wait().unwrap().is_none(), "ignores {ignored:?}: ended after {sent}");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        };
        until(&mut process, 20);
        if !ignored.is_empty() {
            send(process.id(), sent);
            // The program looks for signals in every epoch.
            until(&mut process, n_epochs(&folder) + 200);
        }
        match (ignored, stops) {
            ("HUP INT TERM", _) => process.kill().unwrap(),
            (_, "") => send(process.id(), sent),
            _ => send(process.id(), stops),
        }
        let output = process.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        if ignored != "HUP INT TERM" {
            assert_eq!(output.status.code(), Some(130), "ignores {ignored:?}: {said}");
            assert!(said.contains("mclv train --resume"), "{said}");
        }
    }
}

#[cfg(not(feature = "mpi"))]
#[test]
fn several_processes_are_refused_if_they_could_not_work_together() {
    let words = ["started 4 processes", "built without MPI", "--features mpi"];
    for launcher in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"] {
        Sandbox::new().with_variable(launcher, "4").refuses(&["data", "list"], &words);
        Sandbox::new().with_variable(launcher, "1").succeeds(&["data", "list"]);
    }
}
