//! The client: makes the calls of each case, and says what came of them.

use std::error::Error;
use std::time::Duration;

use crate::case::{CASES, Caller, Case};

/// No case takes longer, unless something hangs.
const CASE_LIMIT: Duration = Duration::from_secs(30);

/// Runs the named cases, or all, against the server at `url`.
pub(crate) async fn run(url: &str, names: &[String]) -> Result<(), Box<dyn Error>> {
    let mut failed = 0;
    let cases = chosen(names)?;
    for (name, case) in &cases {
        let verdict = tokio::time::timeout(CASE_LIMIT, case(&Caller::new(url)?))
            .await
            .unwrap_or_else(|_| Err(format!("not over after {CASE_LIMIT:?}").into()));
        match verdict {
            Ok(()) => println!("{name}: ok"),
            Err(error) => {
                failed += 1;
                println!("{name}: FAILED: {error}");
            }
        }
    }
    let all = cases.len();
    println!("Quill's client: {} of {all} cases passed", all - failed);
    if failed > 0 {
        return Err(format!("{failed} cases failed").into());
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<(&'static str, Case)>, String> {
    if names.is_empty() {
        return Ok(CASES.to_vec());
    }
    let find = |name: &String| CASES.iter().find(|(case, _)| case == name).copied();
    names
        .iter()
        .map(|name| find(name).ok_or_else(|| format!("there is no case {name:?} here")))
        .collect()
}
