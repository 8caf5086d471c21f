//! `stormlog hunt`.

use std::ops::ControlFlow;
use std::time::Duration;

use serde::Serialize;
use stormlog::planted::Fault;

use super::args::{Format, HuntArgs};
use super::fuzz::jobs;
use super::interrupt::Interrupt;
use super::progress::Progress;
use super::{Exit, Failure, Shell, replay_command, report};
use crate::campaign::hunt::{Caught, Control, Hunt, Row};

const SHRINK_TIME: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct Line<'a, T> {
    kind: &'static str,
    #[serde(flatten)]
    of: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
}

#[derive(Serialize)]
struct Totals {
    kind: &'static str,
    faults: usize,
    caught: usize,
    scenarios: usize,
    scenarios_that_hold: usize,
    verdict: &'static str,
    interrupted: bool,
}

/// Plants every fault in turn.
pub fn hunt(shell: &mut Shell, args: &HuntArgs) -> Result<Exit, Failure> {
    if !Hunt::POSSIBLE {
        return Err(Failure::NotPlanted(replay_command::with_planted_faults()));
    }
    let interrupt = Interrupt::catch()?;
    let hunt = Hunt {
        registry: shell.registry,
        seeds: args.budget_seeds,
        jobs: jobs(args.jobs),
        patience: args.patience,
        save_dir: args.save.clone(),
        shrink_time: SHRINK_TIME,
    };
    let command = shell.worker()?;
    let mut progress = Progress::spinner();
    let (mut rows, mut controls): (Vec<Row>, Vec<Control>) = (Vec::new(), Vec::new());
    let mut interrupted = false;
    for scenario in shell.registry.all() {
        let name = scenario.name();
        let mut tick = || tick(&mut progress, &interrupt, &format!("{name} with nothing planted"));
        match hunt.control(*scenario, &command, &mut tick)? {
            ControlFlow::Break(()) => interrupted = true,
            ControlFlow::Continue(control) => {
                progress.aside(|| tell_control(shell, args.format, &control))?;
                controls.push(control);
            }
        }
        if interrupted {
            break;
        }
    }
    if args.format == Format::Text && shell.out.is_wide() {
        shell.out.line(&format!("{:<24} {:>7} {:>9} {:>11}  caught by", "fault", "seeds", "seconds", "ops/choices"))?;
    }
    for fault in Fault::ALL {
        if interrupted {
            break;
        }
        let mut tick = || tick(&mut progress, &interrupt, &format!("{} is planted", fault.name()));
        match hunt.plant(*fault, &command, &mut tick)? {
            ControlFlow::Break(()) => interrupted = true,
            ControlFlow::Continue(row) => {
                progress.aside(|| tell_row(shell, args.format, &row))?;
                rows.push(row);
            }
        }
    }
    progress.finish();
    let caught = rows.iter().filter(|row| row.caught.is_some()).count();
    let scenarios_that_hold = controls.iter().filter(|control| control.failed.is_none()).count();
    let well = !interrupted && caught == Fault::ALL.len() && scenarios_that_hold == controls.len();
    let verdict = if well { "caught" } else { "missed" };
    match args.format {
        Format::Json => shell.out.json(&Totals {
            kind: "totals",
            faults: Fault::ALL.len(),
            caught,
            scenarios: controls.len(),
            scenarios_that_hold,
            verdict,
            interrupted,
        })?,
        Format::Text => {
            let cut = if interrupted { ", interrupted" } else { "" };
            let total = Fault::ALL.len();
            let saved = args.save.display();
            let text = format!("{caught} of {total} planted faults caught{cut}; their cases are in {saved}");
            shell.out.wrapped("", &text, 2)?;
        }
    }
    Ok(Exit::of(!well))
}

fn tick(progress: &mut Progress, interrupt: &Interrupt, what: &str) -> ControlFlow<()> {
    progress.say(what);
    if interrupt.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn tell_control(shell: &mut Shell, format: Format, control: &Control) -> Result<(), Failure> {
    let Control { scenario, seeds, failed } = control;
    match (format, failed) {
        (Format::Json, _) => shell.out.json(&Line { kind: "control", of: control, replay: None })?,
        (Format::Text, None) => {
            shell.out.wrapped("", &format!("nothing planted: {scenario} holds for {seeds} seeds"), 2)?;
        }
        (Format::Text, Some((seed, verdict))) => {
            let text = format!("nothing planted: {scenario} FAILS at seed {seed}: {verdict}");
            shell.out.wrapped("", &text, 2)?;
        }
    }
    Ok(shell.out.flush()?)
}

fn tell_row(shell: &mut Shell, format: Format, row: &Row) -> Result<(), Failure> {
    let Row { fault, caught, seeds, seconds } = row;
    let replay = caught.as_ref().map(|caught| replay_command::replay(shell, &caught.case));
    let out = &mut shell.out;
    match (format, caught, &replay) {
        (Format::Json, ..) => out.json(&Line { kind: "fault", of: row, replay })?,
        (Format::Text, Some(caught), _) if out.is_wide() => {
            let Caught { scenario, oracle, left, .. } = caught;
            let left = left.map_or_else(|| "?".to_owned(), |left| format!("{}/{}", left.operations, left.choices));
            out.line(&table_line(fault, &seeds.to_string(), *seconds, &left, &format!("{oracle} in {scenario}")))?;
        }
        (Format::Text, None, _) if out.is_wide() => {
            out.line(&table_line(fault, &seeds.to_string(), *seconds, "-", "NOT CAUGHT"))?;
        }
        (Format::Text, Some(caught), Some(replay)) => {
            out.line(fault)?;
            out.field("caught by", &format!("{} in {}", caught.oracle, caught.scenario))?;
            out.field("needed", &format!("{seeds} seeds, {seconds:.2} s"))?;
            out.field("shrunk to", &report::left(caught.left))?;
            out.command("replay", replay)?;
        }
        (Format::Text, ..) => {
            out.line(fault)?;
            out.field("NOT CAUGHT", &format!("in {seeds} seeds, {seconds:.2} s"))?;
        }
    }
    Ok(shell.out.flush()?)
}

/// A line of the table; what is left is operations/choices.
fn table_line(fault: &str, seeds: &str, seconds: f64, left: &str, caught_by: &str) -> String {
    format!("{fault:<24} {seeds:>7} {seconds:>9.2} {left:>11}  {caught_by}")
}
