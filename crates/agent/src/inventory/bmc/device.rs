//! The kernel's device of the management controller.
//!
//! Source: include/uapi/linux/ipmi.h of the kernel.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use super::lan::IpmiCommand;
use crate::HostFiles;

/// Names of the device, as ipmitool knows them.
const PATHS: [&str; 3] = ["/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"];
/// For one response: controllers are slow, but hang rather than take longer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);
/// For all commands of an inventory.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Longest response of the kernel's drivers. Units: bytes.
const MAX_RESPONSE: usize = 272;

const SEND: Opcode = opcode::read::<RequestRecord>(b'i', 13);
const RECEIVE: Opcode = opcode::read_write::<ResponseRecord>(b'i', 11);

/// The controller of this machine. Source: `IPMI_SYSTEM_INTERFACE_ADDR_TYPE`, `IPMI_BMC_CHANNEL`.
const CONTROLLER: AddressRecord = AddressRecord {
    kind: 0x0c,
    channel: 0x0f,
    unit: 0,
};

/// `ipmi_system_interface_addr`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct AddressRecord {
    kind: libc::c_int,
    channel: libc::c_short,
    unit: libc::c_uchar,
}

/// `ipmi_msg`.
#[derive(Debug)]
#[repr(C)]
struct MessageRecord {
    function: u8,
    number: u8,
    length: u16,
    data: *mut u8,
}

/// `ipmi_req`.
#[derive(Debug)]
#[repr(C)]
struct RequestRecord {
    address: *mut AddressRecord,
    address_length: libc::c_uint,
    id: libc::c_long,
    message: MessageRecord,
}

/// `ipmi_recv`.
#[derive(Debug)]
#[repr(C)]
struct ResponseRecord {
    kind: libc::c_int,
    address: *mut AddressRecord,
    address_length: libc::c_uint,
    id: libc::c_long,
    message: MessageRecord,
}

const ADDRESS_LENGTH: libc::c_uint = 8;
const _: () = assert!(ADDRESS_LENGTH as usize == size_of::<AddressRecord>());
const LENGTH: u16 = 272;
const _: () = assert!(LENGTH as usize == MAX_RESPONSE);

/// An open device. It is closed, with all responses to come, when dropped.
#[derive(Debug)]
pub(super) struct IpmiDevice {
    file: File,
    deadline: Instant,
    last_id: libc::c_long,
}

impl IpmiDevice {
    /// None without a device.
    pub(super) fn open(files: &HostFiles) -> Option<Self> {
        let open = |path: &&str| {
            let mut options = File::options();
            options.read(true).write(true).open(files.path(path)).ok()
        };
        Some(Self {
            file: PATHS.iter().find_map(open)?,
            deadline: Instant::now() + TIMEOUT,
            last_id: 0,
        })
    }

    /// The response to a command: completion code and data. None without one in time.
    pub(super) fn send(&mut self, command: &IpmiCommand) -> Option<Vec<u8>> {
        let deadline = self.deadline.min(Instant::now() + RESPONSE_TIMEOUT);
        if Instant::now() >= self.deadline {
            return None;
        }
        self.last_id += 1;
        request(&self.file, self.last_id, command).ok()?;
        while Instant::now() < deadline {
            match response(&self.file) {
                Ok((id, response)) if id == self.last_id => return Some(response),
                // Of an earlier command, or an event.
                Ok(_) => {}
                Err(Errno::AGAIN) => std::thread::sleep(POLL_INTERVAL),
                Err(_) => return None,
            }
        }
        // A controller that hangs would hang with each command.
        self.deadline = Instant::now();
        None
    }
}

#[expect(
    unsafe_code,
    reason = "rustix does not know the records of this device"
)]
fn request(device: &File, id: libc::c_long, command: &IpmiCommand) -> Result<(), Errno> {
    let mut address = CONTROLLER;
    let mut data = command.data.clone();
    let mut request = RequestRecord {
        address: &raw mut address,
        address_length: ADDRESS_LENGTH,
        id,
        message: MessageRecord {
            function: command.function,
            number: command.number,
            length: u16::try_from(data.len()).map_err(|_| Errno::MSGSIZE)?,
            data: data.as_mut_ptr(),
        },
    };
    // SAFETY: the opcode is made of the record's size and is that of `IPMICTL_SEND_COMMAND`, whose record it is; another
    // kind of file refuses it. The kernel reads `address_length` bytes of `address` and `length` bytes of `data`, which
    // both have and which live until the end of this function; it keeps a copy and no pointer.
    unsafe { ioctl(device, Updater::<SEND, _>::new(&mut request)) }
}

/// The identifier of a command and the response to it. The device does not wait for one.
#[expect(
    unsafe_code,
    reason = "rustix does not know the records of this device"
)]
fn response(device: &File) -> Result<(libc::c_long, Vec<u8>), Errno> {
    let mut address = CONTROLLER;
    let mut data = vec![0; MAX_RESPONSE];
    let mut response = ResponseRecord {
        kind: 0,
        address: &raw mut address,
        address_length: ADDRESS_LENGTH,
        id: 0,
        message: MessageRecord {
            function: 0,
            number: 0,
            length: LENGTH,
            data: data.as_mut_ptr(),
        },
    };
    // SAFETY: the opcode is made of the record's size and is that of `IPMICTL_RECEIVE_MSG_TRUNC`, whose record it is;
    // another kind of file refuses it. The kernel writes at most `address_length` bytes to `address` and `length` bytes to
    // `data`, which both have and which live until the end of this function; any bytes are valid for their integers.
    unsafe { ioctl(device, Updater::<RECEIVE, _>::new(&mut response)) }?;
    data.truncate(response.message.length.into());
    Ok((response.id, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_kernel() {
        assert_eq!(size_of::<RequestRecord>(), 40);
        assert_eq!(size_of::<ResponseRecord>(), 48);
        // Source: ipmitool's calls, as strace shows them.
        assert_eq!(SEND, 0x8028_690d);
        assert_eq!(RECEIVE, 0xc030_690b);
    }

    #[test]
    fn other_files_refuse() {
        let file = tempfile::tempfile().unwrap();
        let command = IpmiCommand::channel_info(1);
        assert_eq!(request(&file, 1, &command), Err(Errno::NOTTY));
        assert_eq!(response(&file).unwrap_err(), Errno::NOTTY);
    }
}
