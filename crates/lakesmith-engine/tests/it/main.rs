//! Queries through the public session: rows as Spark gives them, from tables that Spark wrote.

mod asking;
mod golden;
mod meaning;
mod pruning;
mod reading;
mod views;
