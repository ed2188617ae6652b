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
        .command(&["logz", "m.safetensors", "--time-limit", "none", "-vv"])
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

#[cfg(not(feature = "mpi"))]
#[test]
fn several_processes_are_refused_if_they_could_not_work_together() {
    let words = ["started 4 processes", "built without MPI", "--features mpi"];
    for launcher in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"] {
        Sandbox::new().with_variable(launcher, "4").refuses(&["data", "list"], &words);
        Sandbox::new().with_variable(launcher, "1").succeeds(&["data", "list"]);
    }
}
