//! x
pub(crate) async fn run() -> Result<(), Box<dyn std::error::Error>> { Ok(()) }
