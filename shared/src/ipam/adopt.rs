//! Taking over what host-local allocated, from under running containers, and giving it back.
//!
//! Everything is done attachment by attachment, under host-local's own flock and, within it, under ours: the plugins hold
//! one of the two at a time and never wait for the other meanwhile. The new home of an address is on the disk before its
//! old one goes, so that it is in one of the two at any moment, and in both for a moment: that is how a run that was
//! killed leaves it, and the next one goes on from there. An ADD of ours looks at both.

mod back;
mod fate;
mod life;
mod plan;
mod unlocked;

use std::collections::HashMap;
use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::Value;

use self::life::{Life, Where};
use self::plan::{Plan, Planner};
use super::config::IpamConfig;
use super::host_local::cache::{self, Cached};
use super::host_local::{Entry, HostLocal};
use super::key::Key;
use super::snapshot::Snapshot;
use super::store::{Location, Store};
use super::{Error, folders};
use crate::{Attachment, Host};

use self::fate::Decided;
pub use back::{Back, Return, Tenancy};
pub use fate::{Fate, Refusal, Taken};
pub(in crate::ipam) use life::host_end;
pub use unlocked::{host_end_of, may_hold};

/// A network whose addresses are to be taken over.
pub struct Adoption<'a> {
    /// This host.
    pub host: &'a Host,
    /// How the network gives addresses now.
    pub config: &'a IpamConfig,
    /// `args.cni` of its configuration, for keys.
    pub cni_args: Option<&'a Value>,
    /// Where libcni keeps its results.
    pub results: &'a [PathBuf],
}

/// A container's interface with its addresses, by host-local's records.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// The container id.
    pub container: String,
    /// The interface, if the records say it.
    pub ifname: Option<String>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

impl Adoption<'_> {
    fn host_local(&self) -> HostLocal {
        HostLocal::new(&self.config.host_local, &self.config.network)
    }

    /// Who has addresses by host-local's records, in the order of the addresses.
    ///
    /// # Errors
    /// host-local's folder or a record cannot be read.
    pub fn tenants(&self) -> Result<Vec<Tenant>, Error> {
        let (mut tenants, mut places) = (Vec::<Tenant>::new(), HashMap::new());
        for Entry { address, container, ifname, .. } in self.host_local().entries()? {
            let place = *places.entry((container.clone(), ifname.clone())).or_insert(tenants.len());
            match tenants.get_mut(place) {
                Some(tenant) => tenant.addresses.push(address),
                None => tenants.push(Tenant { container, ifname, addresses: vec![address] }),
            }
        }
        Ok(tenants)
    }

    /// What [`take`](Self::take) would do, by our records as they were; nothing is changed.
    ///
    /// # Errors
    /// A record, the kernel or the cached result cannot be read.
    pub fn look(&self, tenant: &Tenant, records: &Snapshot) -> Result<Option<Fate>, Error> {
        let entries = self.entries(tenant)?;
        self.decide(tenant, &entries, |planner| planner.plan(records)).map(|decided| decided.map(Decided::fate))
    }

    /// Takes the addresses of a tenant over; `None` if it has none any more.
    ///
    /// # Errors
    /// A lock cannot be had; a record, the kernel or the cached result cannot be read, or a record not be written.
    pub fn take(&self, tenant: &Tenant) -> Result<Option<Fate>, Error> {
        let (host, config, host_local) = (self.host, self.config, self.host_local());
        host_local.locked(|| {
            host_local.tidy();
            // Its DEL may have come, or another adopt, since it was listed.
            let entries = self.entries(tenant)?;
            let location = Location { host, network: &config.network, folder: &config.folder };
            let decided = self.decide(tenant, &entries, |planner| {
                folders::remember(host, &config.network, &config.folder);
                // No ADD may come between the record that comes and the one that goes.
                location.created(|store| {
                    let planned = planner.plan(store)?;
                    if let Ok(plan) = &planned {
                        apply(store, plan)?;
                        entries.iter().try_for_each(|entry| host_local.discard(entry.address))?;
                        host_local.settle()?;
                    }
                    Ok(planned)
                })
            })?;
            if let Some(Decided::Gone(..)) = decided {
                entries.iter().try_for_each(|entry| host_local.discard(entry.address))?;
            }
            Ok(decided.map(Decided::fate))
        })
    }

    /// The records that are still the tenant's.
    fn entries(&self, tenant: &Tenant) -> Result<Vec<Entry>, Error> {
        let host_local = self.host_local();
        let mut entries = Vec::new();
        for address in &tenant.addresses {
            entries.extend(
                host_local
                    .entry(*address)?
                    .filter(|entry| entry.container == tenant.container && entry.ifname == tenant.ifname),
            );
        }
        Ok(entries)
    }

    fn decide(
        &self,
        tenant: &Tenant,
        entries: &[Entry],
        plan: impl FnOnce(Planner<'_>) -> Result<Result<Plan, Vec<Refusal>>, Error>,
    ) -> Result<Option<Decided>, Error> {
        let Some(first) = entries.first() else { return Ok(None) };
        let addresses: Vec<IpAddr> = entries.iter().map(|entry| entry.address).collect();
        let network = &self.config.network;
        let cached = cache::find(self.results, network, &tenant.container, tenant.ifname.as_deref())?;
        // Records without an interface are of old; most containers have but an eth0.
        let ifname =
            cached.as_ref().map(|cached| cached.ifname.as_str()).or(tenant.ifname.as_deref()).unwrap_or("eth0");
        let (Ok(container), Ok(ifname)) = (tenant.container.parse(), ifname.parse()) else {
            return Ok(Some(Decided::Refused(vec![Refusal::Name])));
        };
        let attachment = Attachment { network: network.clone(), container, ifname };
        let there = match life::of(&mut self.host_local(), &attachment, entries, cached.as_ref())? {
            Life::Alive(there) => there,
            Life::Gone(why) => return Ok(Some(Decided::Gone(addresses, why))),
            Life::Doubtful(why) => {
                let file = self.host_local().path(first.address);
                return Ok(Some(Decided::Refused(vec![Refusal::Doubt { why, file }])));
            }
        };
        let has_result = cached.is_some();
        let Cached { args, cni_args, requested, .. } = cached.unwrap_or_default();
        let template = self.config.key_template.as_ref();
        let cni_args = cni_args.as_ref().or(self.cni_args);
        let (key, object, rid) = Key::derive(&args, cni_args, &attachment.container, template);
        let Where { netns, host } = there;
        let request = super::Request {
            attachment: attachment.clone(),
            key: key.clone(),
            object,
            rid,
            netns: None,
            host_end: host,
            requested,
        };
        let planner = Planner { host: self.host, config: self.config, request: &request, netns, entries };
        Ok(Some(match plan(planner)? {
            Ok(_) => {
                let ifname = attachment.ifname.to_string();
                Decided::Taken(Taken { addresses, key, ifname, cached: has_result })
            }
            Err(refusals) => Decided::Refused(refusals),
        }))
    }
}

/// Writes the records, for good.
fn apply(store: &mut Store, plan: &Plan) -> Result<(), Error> {
    plan.changes.iter().try_for_each(|change| store.apply(change))?;
    // Of a killed run, it may not be on the disk.
    for path in plan.kept.iter().map(|address| store.path(*address)) {
        File::open(&path).and_then(|file| file.sync_all()).map_err(|error| Error::io("write", &path, error))?;
    }
    // The folder may be new.
    store.settle()
}
