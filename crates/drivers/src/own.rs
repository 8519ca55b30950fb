//! The agent's own process: its signals, its clock, its CPUs and namespace, its user, and the copies of itself that it starts.

pub use framegauge_linux::clock::monotonic_nanoseconds;
pub use framegauge_linux::detached::{detach, sweep as sweep_groups};
pub use framegauge_linux::fork::{Copy, copy, end_original};
pub use framegauge_linux::kernel_log::warn;
pub use framegauge_linux::limits::{be_first_without_memory, open_files_of_programs, raise_open_files};
pub use framegauge_linux::lock::{Attempt, Lock, folder as lock_folder};
pub use framegauge_linux::namespace::{apart, enter_named};
pub use framegauge_linux::poll::{PollSet, await_no_reader, await_signal, termination_signals};
pub use framegauge_linux::precedence::{Precedence, current as precedence, take as take_precedence};
pub use framegauge_linux::process::{
    effective_user, kernel_release, second_thread, spawn_agent, spawn_handing_over, spawn_self,
    standard_input,
};
pub use framegauge_linux::sched::{allowed_cpus, bind};
pub use framegauge_linux::user::User;
