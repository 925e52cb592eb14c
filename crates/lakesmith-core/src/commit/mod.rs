//! Conflicts of commits in format-free words.
