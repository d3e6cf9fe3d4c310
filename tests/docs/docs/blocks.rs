//! Fenced code in Markdown.

/// One fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// The line of its opening fence, from one.
    pub(crate) line: usize,
    pub(crate) language: String,
    /// The file that the line before it names, as in `build.rs`:
    pub(crate) file: Option<String>,
    pub(crate) text: String,
}

pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (index, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block {
                    line: index + 1,
                    language: language.to_owned(),
                    file: named_file(before),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) if !line.is_empty() => before = line,
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn named_file(line: &str) -> Option<String> {
    let name = line.strip_suffix("`:")?.rsplit('`').next()?;
    name.contains('.').then(|| name.to_owned())
}

/// The lines without the spaces in front, since a page shows code further left
/// than it stands in its file.
pub(crate) fn dedented(code: &str) -> String {
    let lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn blocks_have_a_language_and_maybe_a_file() {
    let page = "a\n\n`src/main.rs`:\n\n```rust\nfn main() {\n}\n```\ntext\n```sh\nls\n```\n";
    let found = blocks(page);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].file.as_deref(), Some("src/main.rs"));
    assert_eq!(
        (found[0].line, found[0].text.as_str()),
        (5, "fn main() {\n}\n")
    );
    assert_eq!((found[1].language.as_str(), &found[1].file), ("sh", &None));
}
