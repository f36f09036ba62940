#!/bin/bash
# Finds the prepared network configurations of this machine by the MAC addresses of its NICs, and applies them: policies
# of nmstate, or keyfiles of NetworkManager in which logical names of NICs are replaced by the real ones.
set -euo pipefail
shopt -s nullglob

# Root of the files, for tests.
root=${PATH_PREFIX:-}
prepared=$root/etc/assisted/network
policies=$root/etc/nmstate
connections=$root/etc/NetworkManager/system-connections
# The initrd hands its connections over to the live system in a folder of their own.
firstboot=$root/etc/coreos-firstboot-network
# The kernel's limit of an interface's name.
longest_name=15

nics() {
    for nic in "$root"/sys/class/net/*; do
        # Bonds, bridges and the like have no device.
        if [ -e "$nic/device" ]; then
            basename "$nic"
        fi
    done
}

# NICs get their final names while drivers load: wait until nothing has changed for 3 s, at most 30 s.
wait_for_names() {
    local before now quiet=0
    before=$(nics)
    for _ in $(seq 30); do
        sleep 1
        now=$(nics)
        if [ "$now" = "$before" ]; then
            quiet=$((quiet + 1))
        else
            quiet=0
        fi
        [ "$quiet" -ge 3 ] && return
        before=$now
    done
}

# apply_policies FOLDER
apply_policies() {
    mkdir -p "$policies"
    cp "$1"/*.yml "$policies"
    nmstatectl service
    if [ -e "$root/etc/initrd-release" ]; then
        mkdir -p "$firstboot"
        cp "$connections"/* "$firstboot"
        /usr/sbin/coreos-copy-firstboot-network
    fi
}

# Replaces the first part of a name, the name of a NIC, in the name of a VLAN on it: real_name LOGICAL_NAME. A name that
# the kernel would refuse loses the end of the NIC's.
real_name() {
    local name=$1 rest logical
    if [ -n "${nic_by_name[$name]:-}" ]; then
        echo "${nic_by_name[$name]}"
        return
    fi
    for logical in "${!nic_by_name[@]}"; do
        rest=${name#"$logical".}
        if [ "$rest" != "$name" ]; then
            local nic=${nic_by_name[$logical]}
            local room=$((longest_name - 1 - ${#rest}))
            if [ "$room" -gt 0 ]; then
                nic=${nic:0:$room}
            fi
            echo "$nic.$rest"
            return
        fi
    done
    echo "$name"
}

# Replaces the name of the interface in a routing rule: real_rule RULE
real_rule() {
    local words index
    read -ra words <<< "$1"
    for index in "${!words[@]}"; do
        if [ "$index" -gt 0 ] && [ "${words[$((index - 1))]}" = iif ]; then
            words[index]=$(real_name "${words[$index]}")
        fi
    done
    echo "${words[*]}"
}

# render_keyfiles FOLDER TARGET
render_keyfiles() {
    local keyfile line key name
    for keyfile in "$1"/*.nmconnection; do
        name=$(real_name "$(basename "$keyfile" .nmconnection)")
        while IFS= read -r line; do
            key=${line%%=*}
            case "$key" in
            id | interface-name | master | parent | primary)
                echo "$key=$(real_name "${line#*=}")"
                ;;
            routing-rule*)
                echo "$key=$(real_rule "${line#*=}")"
                ;;
            *)
                echo "$line"
                ;;
            esac
        done < "$keyfile" > "$2/$name.nmconnection"
        chmod 0600 "$2/$name.nmconnection"
    done
}

# Some NICs appear long after the others, where the drivers of their cards load firmware.
sleep "${DISCOVERY_DELAY_SECONDS:-0}"
wait_for_names

declare -A nic_by_address
for nic in $(nics); do
    address=$(cat "$root/sys/class/net/$nic/address")
    nic_by_address["${address^^}"]=$nic
done

rendered=$(mktemp -d)
found=no
for host in "$prepared"/host*; do
    declare -A nic_by_name=()
    while IFS='=' read -r address logical; do
        nic=${nic_by_address["${address^^}"]:-}
        if [ -n "$nic" ]; then
            nic_by_name["$logical"]=$nic
        fi
    done < "$host/mac_interface.ini"
    [ "${#nic_by_name[@]}" -gt 0 ] || continue

    found=yes
    for _ in "$host"/*.yml; do
        apply_policies "$host"
        break
    done
    render_keyfiles "$host" "$rendered"
done

keyfiles=("$rendered"/*.nmconnection)
if [ "${#keyfiles[@]}" -gt 0 ]; then
    target=$connections
    if [ -e "$root/etc/initrd-release" ]; then
        target=$firstboot
    fi
    mkdir -p "$target"
    # The initrd has made a connection for every NIC, which would compete with the prepared ones.
    rm -f "$target"/*
    cp "${keyfiles[@]}" "$target"
fi
rm -rf "$rendered"
if [ "$found" = no ]; then
    echo "no prepared network configuration is for this machine" >&2
fi
