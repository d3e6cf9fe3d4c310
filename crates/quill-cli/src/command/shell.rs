//! `quill completions` and `quill man`: what shells and manuals are told.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::output::print;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "quill", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let folder = &args.folder;
    let wrong = |error: std::io::Error| Failure::input(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(wrong)?;
    let mut command = Args::command();
    // Which gives each subcommand the name that `man` knows it by.
    command.build();
    for page in std::iter::once(&command).chain(command.get_subcommands()) {
        let page = Man::new(page.clone());
        let mut text = Vec::new();
        page.render(&mut text).map_err(wrong)?;
        std::fs::write(folder.join(page.get_filename()), text).map_err(wrong)?;
    }
    Ok(())
}
