//! Which addresses a stranger may make us ask.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use crate::{Job, Reach, SourceError};

/// True for what anybody on the internet can reach. Everything that is special
/// in the registries of IANA is not, and neither is an IPv4 address in disguise.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || a == 10
        || a == 127
        // Between carriers and their customers.
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        // Protocol assignments, documentation, relays.
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 192 && b == 88 && c == 99)
        || (a == 192 && b == 168)
        || (a == 198 && (b == 18 || b == 19))
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113)
        // Multicast, reserved, broadcast.
        || a >= 224)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // Only this part of the space is given out for use; mapped, compatible,
    // translated, local and multicast addresses lie outside of it.
    (parts[0] & 0xe000) == 0x2000
        // 2001::/23 protocol assignments (Teredo among them), documentation, 6to4, 3fff::/20.
        && !(parts[0] == 0x2001 && parts[1] < 0x0200)
        && !(parts[0] == 0x2001 && parts[1] == 0x0db8)
        && parts[0] != 0x2002
        && !(parts[0] == 0x3fff && parts[1] < 0x1000)
}

/// The addresses of a host, looked up once. A stranger's host must not have a
/// single one that is private: which of them a client takes is not ours to say.
pub(crate) fn resolve(host: &str, port: u16, job: &Job<'_>) -> Result<Vec<IpAddr>, SourceError> {
    let refused = |because: String| SourceError::Refused {
        what: host.to_owned(),
        because,
    };
    let hosts = job.options.hosts;
    if !hosts.is_empty()
        && !hosts
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(host))
    {
        return Err(refused(
            "is not among the hosts that may be asked".to_owned(),
        ));
    }
    let addresses: Vec<IpAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| refused(format!("cannot be looked up: {error}")))?
        .map(|address: SocketAddr| address.ip())
        .collect();
    if addresses.is_empty() {
        return Err(refused("has no address".to_owned()));
    }
    if job.options.reach == Reach::Public && addresses.iter().any(|address| !is_public(*address)) {
        // Which address it is would be news for who asks from outside.
        return Err(refused("does not lead to a public address".to_owned()));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            let address: IpAddr = text.parse().expect(text);
            assert!(!is_public(address), "{text}");
        }
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "140.82.121.4",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450:4001::1",
        ] {
            let address: IpAddr = text.parse().expect(text);
            assert!(is_public(address), "{text}");
        }
    }
}
