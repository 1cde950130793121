//! Parses the addresses of etcd's servers.

use std::net::IpAddr;

/// Maximum number of servers.
pub const MAX_ENDPOINTS: usize = 9;

/// The servers of etcd, and whether they use TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdEndpoints {
    addresses: Vec<String>,
    is_tls: bool,
}

/// The reason for which addresses are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The number of servers is not in range.
    #[error("there are {0} addresses of etcd; give 1 to {MAX_ENDPOINTS}")]
    Count(usize),
    /// The text is not `http://HOST:PORT` or `https://HOST:PORT`.
    #[error("`{0}` is not an address of etcd, such as http://127.0.0.1:2379 or https://etcd1.example.org:2379")]
    Malformed(String),
    /// Some servers use TLS and others do not.
    #[error("some addresses of etcd begin with http:// and others with https://")]
    Mixed,
    /// A server on another machine does not use TLS.
    #[error("{0} is not encrypted, so anyone on the path could change the layout: use https://")]
    Plaintext(String),
}

impl EtcdEndpoints {
    /// Parses addresses of the form `http://HOST:PORT` or `https://HOST:PORT`. Without `is_plaintext_allowed`, those
    /// with `http` have to be on the loopback interface.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(texts: &[String], is_plaintext_allowed: bool) -> Result<EtcdEndpoints, EndpointError> {
        if !(1..=MAX_ENDPOINTS).contains(&texts.len()) {
            return Err(EndpointError::Count(texts.len()));
        }
        let parsed = texts.iter().map(|text| parse(text).ok_or_else(|| EndpointError::Malformed(text.clone())));
        let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
        let is_tls = parsed[0].is_tls;
        if parsed.iter().any(|endpoint| endpoint.is_tls != is_tls) {
            return Err(EndpointError::Mixed);
        }
        let exposed = texts.iter().zip(&parsed).find(|(_, endpoint)| !is_tls && !is_loopback(endpoint.host));
        if let Some((text, _)) = exposed.filter(|_| !is_plaintext_allowed) {
            return Err(EndpointError::Plaintext(text.clone()));
        }
        Ok(EtcdEndpoints { addresses: parsed.iter().map(|endpoint| endpoint.address.to_owned()).collect(), is_tls })
    }

    /// Returns the addresses as `HOST:PORT`.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.addresses.iter().map(String::as_str)
    }

    /// Whether the servers use TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }
}

struct Parsed<'t> {
    is_tls: bool,
    address: &'t str,
    host: &'t str,
}

fn parse(text: &str) -> Option<Parsed<'_>> {
    let (is_tls, rest) = match text.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix("http://")?),
    };
    let address = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = address.rsplit_once(':')?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bracketed {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    (is_host && is_port).then_some(Parsed { is_tls, address, host: bracketed.unwrap_or(host) })
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Result<EtcdEndpoints, EndpointError> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        EtcdEndpoints::parse(&texts, false)
    }

    #[test]
    fn addresses_have_a_scheme_a_host_and_a_port() {
        for text in ["http://127.0.0.1:2379", "http://[::1]:2379/", "http://localhost:1", "https://etcd-1.example:2379"]
        {
            let endpoints = parsed(&[text]).unwrap();
            assert_eq!(endpoints.is_tls(), text.starts_with("https"));
            assert!(endpoints.addresses().all(|address| text.contains(address)), "{text}: {endpoints:?}");
        }
        let malformed = [
            "",
            "127.0.0.1:2379",
            "http://127.0.0.1",
            "http://:2379",
            "http://a:0",
            "http://a:65536",
            "http://a:+1",
            "http://a b:1",
            "http://a:1/x",
            "http://u@a:1",
            "http://[::1:1",
            "http://[x]:1",
            "ftp://a:1",
            "unix://a:1",
            "http://a:1,http://b:1",
        ];
        for text in malformed {
            assert_eq!(parsed(&[text]), Err(EndpointError::Malformed(text.to_owned())));
        }
        assert_eq!(parsed(&[]), Err(EndpointError::Count(0)));
        assert_eq!(parsed(&["http://127.0.0.1:1"; 10]), Err(EndpointError::Count(10)));
        assert_eq!(parsed(&["http://127.0.0.1:1", "https://127.0.0.1:2"]), Err(EndpointError::Mixed));
    }

    #[test]
    fn other_machines_require_tls_unless_it_is_waived() {
        for text in ["http://10.0.0.1:2379", "http://etcd:2379", "http://localhost.example:1", "http://[fe80::1]:1"] {
            assert_eq!(parsed(&["http://127.0.0.1:1", text]), Err(EndpointError::Plaintext(text.to_owned())));
            assert!(EtcdEndpoints::parse(&[text.to_owned()], true).is_ok());
        }
    }
}
