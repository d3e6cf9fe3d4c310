//! Comments of a .proto file to rustdoc.

use buffa_descriptor::generated::descriptor::SourceCodeInfo;
use proc_macro2::TokenStream;
use quote::quote;

/// The comment at `path` of a file: the one above the element, else the one
/// behind it. Paths are as in `SourceCodeInfo.Location`.
pub(crate) fn comment<'a>(info: &'a SourceCodeInfo, path: &[i32]) -> Option<&'a str> {
    let location = info.location.iter().find(|at| at.path == path)?;
    [&location.leading_comments, &location.trailing_comments]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .find(|text| !text.trim().is_empty())
}

/// Doc attributes for a comment, written so that rustdoc shows it as text:
/// indented blocks and bare fences would otherwise be compiled as tests.
pub(crate) fn attributes(comment: Option<&str>) -> TokenStream {
    let lines = comment.map(doc_lines).unwrap_or_default();
    quote! { #(#[doc = #lines])* }
}

fn doc_lines(comment: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut fence: Option<String> = None;
    let mut indented = false;
    for line in comment.trim_end().lines() {
        let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
        let mark = fence_mark(line);
        if fence.is_some() {
            if mark == fence {
                fence = None;
            }
            lines.push(doc_line(line));
            continue;
        }
        let is_code = line.starts_with("    ") || line.starts_with('\t');
        if indented && !is_code && !line.is_empty() {
            close_block(&mut lines);
            indented = false;
        }
        if let Some(mark) = mark {
            lines.push(doc_line(&text_fence(line, &mark)));
            fence = Some(mark);
        } else if is_code {
            let starts_block = lines.last().is_none_or(|line| line.trim().is_empty());
            if !indented && starts_block {
                lines.push(" ```text".to_owned());
                indented = true;
            }
            let code = line.strip_prefix("    ").unwrap_or(line);
            lines.push(doc_line(if indented { code } else { line.trim_start() }));
        } else {
            lines.push(doc_line(&without_html(line)));
        }
    }
    if indented {
        close_block(&mut lines);
    }
    if let Some(mark) = fence {
        lines.push(doc_line(&mark));
    }
    lines
}

/// Ends a code block before the blank lines that follow it.
fn close_block(lines: &mut Vec<String>) {
    let blank = lines.iter().rev().take_while(|line| line.trim().is_empty());
    let end = lines.len() - blank.count();
    lines.insert(end, " ```".to_owned());
}

fn doc_line(line: &str) -> String {
    if line.is_empty() {
        String::new()
    } else {
        format!(" {line}")
    }
}

/// The characters that open or close a fenced block, if `line` does either.
fn fence_mark(line: &str) -> Option<String> {
    let text = line.trim_start();
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let count = text.chars().take_while(|c| *c == mark).count();
    (count >= 3).then(|| mark.to_string().repeat(count))
}

/// A fence without a language, or that says it is Rust, says it is text.
fn text_fence(line: &str, mark: &str) -> String {
    match line.trim_start().trim_start_matches(mark).trim() {
        "" | "rust" => format!("{mark}text"),
        language => format!("{mark}{language}"),
    }
}

/// `<` outside code spans would start a tag and swallow text.
fn without_html(line: &str) -> String {
    let mut in_code = false;
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        in_code ^= c == '`';
        if c == '<' && !in_code {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_stays_and_tags_are_escaped() {
        assert_eq!(
            doc_lines(" Sends `a<b>` to <name>.\n\n More.\n"),
            [" Sends `a<b>` to \\<name>.", "", " More."]
        );
    }

    #[test]
    fn indented_blocks_become_text() {
        assert_eq!(
            doc_lines(" For example:\n\n     let x = nonsense(;\n       deeper\n\n After."),
            [
                " For example:",
                "",
                " ```text",
                " let x = nonsense(;",
                "   deeper",
                " ```",
                "",
                " After."
            ]
        );
    }

    #[test]
    fn an_indented_line_inside_a_paragraph_is_prose() {
        assert_eq!(doc_lines(" One\n     two"), [" One", " two"]);
    }

    #[test]
    fn fences_become_text_and_are_closed() {
        assert_eq!(
            doc_lines(" ```\n <x>\n ```\n ```json\n {}"),
            [" ```text", " <x>", " ```", " ```json", " {}", " ```"]
        );
        assert_eq!(
            doc_lines(" ~~~~rust\n x\n ~~~~"),
            [" ~~~~text", " x", " ~~~~"]
        );
    }
}
