//! How many heaps glibc keeps: one for each core instead of eight, before anything is allocated in them.
//!
//! Every thread leaves what it freed in the heap that it happened to use, and a rewrite on many threads would so hold half as
//! much again as its limit allows. Only the environment that a process starts with says how many there are, hence the start
//! anew. Whoever sets the variable is left alone.
//!
//! # Source
//! glibc manual, "Memory Allocation Tunables" (`glibc.malloc.arena_max`).

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn limit() {
    use std::os::unix::process::CommandExt as _;

    const VARIABLE: &str = "MALLOC_ARENA_MAX";
    if std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let (Ok(program), Ok(cores)) = (std::env::current_exe(), std::thread::available_parallelism()) else { return };
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let mut again = std::process::Command::new(program);
    if let Some(name) = name {
        again.arg0(name);
    }
    // It returns only if it failed; the program works as it is, with more memory.
    let _failed = again.args(arguments).env(VARIABLE, cores.to_string()).exec();
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn limit() {}
