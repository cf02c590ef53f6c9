//! The filter: a small program that the kernel runs before every system call of the server.
//!
//! It lets pass what cannot matter by looking at the number and, for a few, at an argument that is
//! no pointer. What it lets pass whatever the arguments are, the kernel remembers and does not ask
//! again (Linux 5.11), so the length of the list costs nothing.

use libc::sock_filter;

use super::calls::{self, Form};

const OFFSET_NR: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xC000_00B7;

/// Whether there is a table for this machine.
pub(crate) const SUPPORTED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCH: u32 = 0;

/// Numbers from here on are calls with 32-bit pointers, on x86-64.
const X32: u32 = 0x4000_0000;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const ALLOW: sock_filter = say(libc::SECCOMP_RET_ALLOW);
const NOTIFY: sock_filter = say(libc::SECCOMP_RET_USER_NOTIF);
const NO_SUCH_CALL: sock_filter = say(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);

const fn say(what: u32) -> sock_filter {
    sock_filter {
        code: RETURN,
        jt: 0,
        jf: 0,
        k: what,
    }
}

const fn load(offset: u32) -> sock_filter {
    sock_filter {
        code: LOAD,
        jt: 0,
        jf: 0,
        k: offset,
    }
}

/// Skips `yes` or `no` of the following.
const fn test(code: u16, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter {
        code,
        jt: yes,
        jf: no,
        k,
    }
}

/// The lower half of an argument: enough for descriptors, flags and commands.
const fn load_arg(n: usize) -> sock_filter {
    let low = if cfg!(target_endian = "big") { 4 } else { 0 };
    load(OFFSET_ARGS + 8 * n as u32 + low)
}

/// The program. With `reads`, calls that only look are told as well.
pub(crate) fn program(reads: bool) -> Vec<sock_filter> {
    let mut program = vec![
        load(OFFSET_ARCH),
        test(IF_EQUAL, ARCH, 1, 0),
        ALLOW,
        load(OFFSET_NR),
        test(IF_AT_LEAST, X32, 0, 1),
        ALLOW,
    ];
    for call in calls::all() {
        if !reads && matches!(call.form, Form::Look(..) | Form::List(_)) {
            continue;
        }
        let block = block(call.form, reads);
        program.push(test(IF_EQUAL, call.nr as u32, 0, block.len() as u8));
        program.extend(block);
    }
    program.push(ALLOW);
    program
}

/// What to say to one call. Ends in an answer on every path.
fn block(form: Form, reads: bool) -> Vec<sock_filter> {
    match form {
        Form::Refused => vec![NO_SUCH_CALL],
        Form::Open(_, _, flags) if !reads => vec![
            load_arg(flags),
            test(IF_ANY_BIT, calls::OPEN_TO_CHANGE as u32, 0, 1),
            NOTIFY,
            ALLOW,
        ],
        Form::Fcntl(_, command, _) => {
            let mut block = vec![load_arg(command)];
            for command in calls::LOCK_COMMANDS {
                block.push(test(IF_EQUAL, command as u32, 0, 1));
                block.push(NOTIFY);
            }
            block.push(ALLOW);
            block
        }
        _ => vec![NOTIFY],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own rules: jumps go forward and stay inside, and the end is an answer.
    #[test]
    fn programs_are_well_formed() {
        for reads in [false, true] {
            let program = program(reads);
            assert!(program.len() < 4096);
            for (at, step) in program.iter().enumerate() {
                let furthest = at + 1 + usize::from(step.jt.max(step.jf));
                assert!(step.code == RETURN || furthest < program.len(), "at {at}");
            }
            assert_eq!(program.last().map(|s| s.code), Some(RETURN));
        }
    }

    #[test]
    fn no_call_is_listed_twice() {
        let mut numbers: Vec<_> = calls::all().map(|c| c.nr).collect();
        let before = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(before, numbers.len());
    }
}
