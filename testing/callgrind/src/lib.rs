//! Instructions of hot paths, by callgrind: the same on every machine, so a limit on
//! them can gate a change.
//!
//! A bench hands its cases to [`gate`], which runs each of them N and 2N times under
//! `valgrind --tool=callgrind`. That counts inside of [`counted`] only, on the thread
//! that is there; the difference is what N took. Above its limit the bench fails.
//! Without valgrind, or with flags that are another harness's, it says so and does
//! nothing.
//!
//! ```no_run
//! use callgrind_gate::{Case, gate, repeat};
//!
//! const CASES: &[Case] = &[Case {
//!     name: "push",
//!     limit: 20,
//!     run: |n| {
//!         let mut list = Vec::with_capacity(n as usize);
//!         repeat(n, |turn| list.push(turn));
//!     },
//! }];
//!
//! fn main() -> std::process::ExitCode {
//!     gate("iai_list", 10_000, CASES)
//! }
//! ```
//!
//! Where the instructions go:
//! `valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*callgrind_gate*counted*' BENCH --run CASE N`,
//! then `callgrind_annotate`.

mod count;
mod gate;

pub use count::{counted, repeat};
pub use gate::{Case, gate};
