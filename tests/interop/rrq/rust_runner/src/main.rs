//! Handlers on the real Rust runner, for the interop tests and (built with --release) the benchmarks:
//!     rust_runner --tcp-socket HOST:PORT
//! RRQ_MARKS names a file that gets a line when a handler begins, ends, or is dropped half-way. The same handlers stand
//! in runner.c and in handlers.py.
//!
//! SPDX-License-Identifier: Apache-2.0
use rrq_runner::{ExecutionError, ExecutionOutcome, ExecutionRequest, OutcomeStatus, Registry};
use serde_json::{Value, json};
use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;
use std::time::Duration;

fn mark(event: &str, function: &str, job: &str, attempt: u32) {
    static PATH: OnceLock<Option<String>> = OnceLock::new();
    let Some(path) = PATH.get_or_init(|| std::env::var("RRQ_MARKS").ok()) else { return };
    let line = format!("{event} {function} {job} {attempt} {}\n", std::process::id());
    let file = OpenOptions::new().create(true).append(true).open(path);
    if let Err(problem) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("rust_runner: {path}: {problem}");
    }
}

fn begin(request: &ExecutionRequest) {
    mark("begin", &request.function_name, &request.job_id, request.context.attempt);
}

/// Says how a handler came to its end, also when the runtime drops it: a cancel, or a deadline.
struct Watch {
    function: String,
    job: String,
    attempt: u32,
    ended: bool,
}

impl Watch {
    fn begin(request: &ExecutionRequest) -> Self {
        begin(request);
        Self {
            function: request.function_name.clone(),
            job: request.job_id.clone(),
            attempt: request.context.attempt,
            ended: false,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        mark(if self.ended { "end" } else { "cancelled" }, &self.function, &self.job, self.attempt);
    }
}

fn success(request: &ExecutionRequest, result: Value) -> ExecutionOutcome {
    ExecutionOutcome::success(request.job_id.as_str(), request.request_id.as_str(), result)
}

fn number(request: &ExecutionRequest, name: &str, otherwise: u64) -> u64 {
    request.params.get(name).and_then(Value::as_u64).unwrap_or(otherwise)
}

fn text(request: &ExecutionRequest, name: &str) -> Option<String> {
    request.params.get(name).and_then(Value::as_str).map(str::to_string)
}

/// Whether this attempt is past the `times` that the job wants to go wrong: then it succeeds.
fn recovered(request: &ExecutionRequest) -> Option<ExecutionOutcome> {
    let attempt = request.context.attempt;
    (u64::from(attempt) > number(request, "times", u64::MAX)).then(|| success(request, json!({ "attempt": attempt })))
}

async fn echo(request: ExecutionRequest) -> ExecutionOutcome {
    begin(&request);
    let params = request.params.clone().into_iter().collect();
    success(&request, Value::Object(params))
}

async fn context(request: ExecutionRequest) -> ExecutionOutcome {
    begin(&request);
    success(&request, serde_json::to_value(&request.context).unwrap_or_default())
}

async fn sleep(request: ExecutionRequest) -> ExecutionOutcome {
    let ms = number(&request, "ms", 0);
    let mut watch = Watch::begin(&request);
    tokio::time::sleep(Duration::from_millis(ms)).await;
    watch.ended = true;
    success(&request, json!({ "slept_ms": ms }))
}

async fn fail(request: ExecutionRequest) -> ExecutionOutcome {
    begin(&request);
    if let Some(outcome) = recovered(&request) {
        return outcome;
    }
    let error = ExecutionError {
        message: text(&request, "message").unwrap_or_else(|| "it failed".to_string()),
        error_type: text(&request, "type"),
        code: text(&request, "code"),
        details: request.params.get("details").cloned(),
    };
    ExecutionOutcome {
        job_id: Some(request.job_id),
        request_id: Some(request.request_id),
        status: OutcomeStatus::Error,
        result: None,
        error: Some(error),
        retry_after_seconds: None,
    }
}

async fn retry(request: ExecutionRequest) -> ExecutionOutcome {
    begin(&request);
    if let Some(outcome) = recovered(&request) {
        return outcome;
    }
    let after = request.params.get("after").and_then(Value::as_f64);
    let message = text(&request, "message").unwrap_or_else(|| "try again".to_string());
    ExecutionOutcome::retry(request.job_id, request.request_id, message, after)
}

async fn late(request: ExecutionRequest) -> ExecutionOutcome {
    begin(&request);
    ExecutionOutcome::timeout(request.job_id, request.request_id, "gave up by itself")
}

async fn big(request: ExecutionRequest) -> ExecutionOutcome {
    begin(&request);
    let bytes = usize::try_from(number(&request, "bytes", 0)).unwrap_or(0);
    success(&request, Value::String("x".repeat(bytes)))
}

async fn pid(request: ExecutionRequest) -> ExecutionOutcome {
    begin(&request);
    success(&request, json!({ "pid": std::process::id() }))
}

async fn crash(request: ExecutionRequest) -> ExecutionOutcome {
    begin(&request);
    match recovered(&request) {
        Some(outcome) => outcome,
        None => std::process::exit(7),
    }
}

/// The value of the last --tcp-socket: an orchestrator appends its own to the command that it was given.
fn address() -> Result<String, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let pair = words.windows(2).rev().find(|pair| pair[0] == "--tcp-socket");
    pair.map(|pair| pair[1].clone()).ok_or_else(|| "usage: rust_runner --tcp-socket HOST:PORT".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut registry = Registry::new();
    registry.register("echo", echo);
    registry.register("context", context);
    registry.register("sleep", sleep);
    registry.register("fail", fail);
    registry.register("retry", retry);
    registry.register("late", late);
    registry.register("big", big);
    registry.register("pid", pid);
    registry.register("crash", crash);
    rrq_runner::run_tcp(&registry, rrq_runner::parse_tcp_socket(&address()?)?)
}
