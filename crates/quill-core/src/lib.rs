//! The vocabulary of Quill.
