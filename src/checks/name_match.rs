//! Compares names.
