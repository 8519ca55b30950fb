// The scenarios of bench/simulators in ns-3: long TCP flows over point-to-point links with taildrop queues.
//
//   many_hosts SCENARIO SECONDS   (SCENARIO: many-to-one, or fat-tree-K such as fat-tree-8)
//
// many-to-one: 16 senders in four groups, a switch for each group, one switch above them, one receiver.
// fat-tree-K: k cubed over 4 hosts, each sends to the host half the network and one further on; a destination decides its
// way. Links: 1 Gb/s, 5 us, queues of 100 packets. TCP: NewReno with SACK, initial window 10, minimum RTO 200 ms.
// Prints one line of JSON. Bytes are read at the sinks, those of the second half of the time by themselves; packets are
// those that sinks' own links delivered.

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

uint64_t g_packets = 0;

void
Received(Ptr<const Packet> packet)
{
    if (packet->GetSize() > 200)
    {
        ++g_packets;
    }
}

uint64_t
Bytes(const ApplicationContainer& sinks)
{
    uint64_t bytes = 0;
    for (uint32_t sink = 0; sink < sinks.GetN(); ++sink)
    {
        bytes += DynamicCast<PacketSink>(sinks.Get(sink))->GetTotalRx();
    }
    return bytes;
}

// A network: nodes, links with addresses, and static routes by the destination's host.
struct Network
{
    NodeContainer hosts;
    NodeContainer switches;
    std::vector<Ipv4Address> addresses; // of hosts
    uint32_t subnet = 0;
    PointToPointHelper link;

    Network()
    {
        link.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
        link.SetChannelAttribute("Delay", StringValue("5us"));
        link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100p"));
    }

    // Joins two nodes; returns the number of the interface at the first and at the second.
    std::pair<uint32_t, uint32_t> Join(Ptr<Node> one, Ptr<Node> other, bool host)
    {
        NetDeviceContainer devices = link.Install(one, other);
        Ipv4AddressHelper address;
        address.SetBase(Ipv4Address((10u << 24) | (subnet++ << 2)), "255.255.255.252");
        Ipv4InterfaceContainer interfaces = address.Assign(devices);
        if (host)
        {
            addresses.push_back(interfaces.GetAddress(0));
        }
        return {interfaces.Get(0).second, interfaces.Get(1).second};
    }
};

Ptr<Ipv4StaticRouting>
Routes(Ptr<Node> node)
{
    Ipv4StaticRoutingHelper helper;
    return helper.GetStaticRouting(node->GetObject<Ipv4>());
}

void
Flow(Network& network, uint32_t from, uint32_t to, double seconds, ApplicationContainer& sinks)
{
    uint16_t port = 5000 + from;
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(network.addresses[to], port));
    source.SetAttribute("MaxBytes", UintegerValue(0));
    source.SetAttribute("SendSize", UintegerValue(65536));
    source.Install(network.hosts.Get(from)).Start(Seconds(0));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sinks.Add(sink.Install(network.hosts.Get(to)));
}

void
ManyToOne(Network& network)
{
    network.hosts.Create(17);
    network.switches.Create(5);
    InternetStackHelper().Install(NodeContainer(network.hosts, network.switches));
    Ptr<Node> root = network.switches.Get(4);
    std::vector<uint32_t> down(17);
    for (uint32_t host = 0; host < 17; ++host)
    {
        Ptr<Node> at = host < 16 ? network.switches.Get(host / 4) : root;
        down[host] = network.Join(network.hosts.Get(host), at, true).second;
    }
    for (uint32_t group = 0; group < 4; ++group)
    {
        auto [up, below] = network.Join(network.switches.Get(group), root, false);
        Routes(network.switches.Get(group))->SetDefaultRoute(Ipv4Address::GetAny(), up);
        for (uint32_t host = 4 * group; host < 4 * group + 4; ++host)
        {
            Routes(network.switches.Get(group))->AddHostRouteTo(network.addresses[host], down[host]);
            Routes(root)->AddHostRouteTo(network.addresses[host], below);
        }
    }
    Routes(root)->AddHostRouteTo(network.addresses[16], down[16]);
    for (uint32_t host = 0; host < 17; ++host)
    {
        Routes(network.hosts.Get(host))->SetDefaultRoute(Ipv4Address::GetAny(), 1);
    }
}

// Al-Fares et al. 2008. A destination's number chooses among ways up.
void
FatTree(Network& network, uint32_t k)
{
    uint32_t half = k / 2, hosts = k * half * half, edges = k * half;
    network.hosts.Create(hosts);
    network.switches.Create(2 * edges + half * half);
    InternetStackHelper stack;
    stack.Install(NodeContainer(network.hosts, network.switches));
    auto edge = [&](uint32_t pod, uint32_t place) { return network.switches.Get(pod * half + place); };
    auto aggregation = [&](uint32_t pod, uint32_t place) { return network.switches.Get(edges + pod * half + place); };
    auto core = [&](uint32_t group, uint32_t place) { return network.switches.Get(2 * edges + group * half + place); };
    std::vector<uint32_t> down(hosts);
    for (uint32_t host = 0; host < hosts; ++host)
    {
        down[host] = network.Join(network.hosts.Get(host), edge(host / half / half, host / half % half), true).second;
        Routes(network.hosts.Get(host))->SetDefaultRoute(Ipv4Address::GetAny(), 1);
    }
    for (uint32_t pod = 0; pod < k; ++pod)
    {
        for (uint32_t low = 0; low < half; ++low)
        {
            for (uint32_t high = 0; high < half; ++high)
            {
                auto [up, below] = network.Join(edge(pod, low), aggregation(pod, high), false);
                for (uint32_t host = 0; host < hosts; ++host)
                {
                    bool inside = host / half == pod * half + low;
                    if (!inside && host % half == high)
                    {
                        Routes(edge(pod, low))->AddHostRouteTo(network.addresses[host], up);
                    }
                    if (inside)
                    {
                        Routes(aggregation(pod, high))->AddHostRouteTo(network.addresses[host], below);
                    }
                }
            }
            for (uint32_t host = (pod * half + low) * half; host < (pod * half + low + 1) * half; ++host)
            {
                Routes(edge(pod, low))->AddHostRouteTo(network.addresses[host], down[host]);
            }
        }
        for (uint32_t high = 0; high < half; ++high)
        {
            for (uint32_t top = 0; top < half; ++top)
            {
                auto [up, below] = network.Join(aggregation(pod, high), core(high, top), false);
                for (uint32_t host = 0; host < hosts; ++host)
                {
                    bool inside = host / half / half == pod;
                    if (!inside && host / half % half == top)
                    {
                        Routes(aggregation(pod, high))->AddHostRouteTo(network.addresses[host], up);
                    }
                    if (inside)
                    {
                        Routes(core(high, top))->AddHostRouteTo(network.addresses[host], below);
                    }
                }
            }
        }
    }
}

} // namespace

int
main(int count, char* words[])
{
    if (count != 3)
    {
        std::cerr << "many_hosts: expected a scenario and seconds\n";
        return 2;
    }
    std::string scenario = words[1];
    double seconds = std::atof(words[2]);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Network network;
    ApplicationContainer sinks;
    if (scenario == "many-to-one")
    {
        ManyToOne(network);
        for (uint32_t host = 0; host < 16; ++host)
        {
            Flow(network, host, 16, seconds, sinks);
        }
    }
    else
    {
        FatTree(network, std::atoi(scenario.substr(9).c_str()));
        uint32_t hosts = network.hosts.GetN();
        for (uint32_t host = 0; host < hosts; ++host)
        {
            Flow(network, host, (host + hosts / 2 + 1) % hosts, seconds, sinks);
        }
    }
    for (uint32_t host = 0; host < network.hosts.GetN(); ++host)
    {
        // The first device is the loopback's.
        for (uint32_t device = 0; device < network.hosts.Get(host)->GetNDevices(); ++device)
        {
            network.hosts.Get(host)->GetDevice(device)->TraceConnectWithoutContext("MacRx", MakeCallback(&Received));
        }
    }
    uint64_t early = 0;
    Simulator::Schedule(Seconds(seconds / 2), [&] { early = Bytes(sinks); });
    Simulator::Stop(Seconds(seconds));
    std::clock_t begun = std::clock();
    Simulator::Run();
    double cpu = double(std::clock() - begun) / CLOCKS_PER_SEC;
    uint64_t bytes = Bytes(sinks);
    std::cout << "{\"cpu_seconds\": " << cpu << ", \"packets\": " << g_packets << ", \"bytes\": " << bytes << ", \"late_bytes\": " << bytes - early
              << ", \"events\": " << Simulator::GetEventCount() << "}\n";
    Simulator::Destroy();
    return 0;
}
