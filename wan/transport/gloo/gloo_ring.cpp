// A baseline to compare with. It has its own connections, because Gloo's collectives need a context
// that Gloo connects itself.
#include "wan/transport/gloo/gloo_ring.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <set>

#include "wan/transport/gloo/gloo_meeting.h"

namespace farstep::wan {

namespace {

// Gives Gloo's rendezvous our store, with keys of this generation.
class RendezvousStore : public gloo::rendezvous::Store {
 public:
  RendezvousStore(wan::Store& store, uint64_t generation)
      : store_(store), prefix_(fmt::format("ring/{}/", generation)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.put(prefix_ + key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const auto value = store_.get(prefix_ + key);
    return {value.begin(), value.end()};
  }
  // get() waits until the key exists. The store's own deadline applies, not Gloo's.
  void wait(const std::vector<std::string>& keys) override {
    for (const auto& key : keys) store_.get(prefix_ + key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 private:
  wan::Store& store_;
  const std::string prefix_;
};

// The two ends of a connection.
std::string ends_of(const ProcessSocket& socket) {
  return socket.local.text() + " " + socket.remote->text();
}

std::vector<ProcessSocket> connections_from(const std::string& ip) {
  auto found = process_sockets();
  std::erase_if(found,
                [&](const auto& socket) { return !socket.remote || socket.local.ip() != ip; });
  return found;
}

}  // namespace

GlooRing::GlooRing(const MeshOptions& mesh, double stall_seconds, Store& store) : mesh_(mesh) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto ip = SocketAddress(mesh.address, 0).ip();
  // Gloo does not return its sockets: the ring's are those that appear while it connects. A socket
  // that closes meanwhile may leave its descriptor to one of them, so their addresses count.
  std::set<std::string> others;
  for (const auto& socket : connections_from(ip)) others.insert(ends_of(socket));
  run([&] {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = mesh.address;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    const auto context = std::make_shared<gloo::rendezvous::Context>(mesh.rank, mesh.size());
    // Gloo has one timeout for connecting and for operations, so it is set twice.
    context->setTimeout(to_milliseconds(mesh.connect_seconds));
    RendezvousStore addresses(store, mesh.generation);
    context->connectFullMesh(addresses, device);
    context->setTimeout(to_milliseconds(stall_seconds));
    context_ = context;
  });
  for (const auto& socket : connections_from(ip)) {
    if (others.contains(ends_of(socket))) continue;
    const int fd = socket.fd;
    keep_alive(fd);
    pace_with(fd, mesh.congestion_control);
    // In a ring a site sends to one neighbour only, so each connection may use the whole uplink.
    if (mesh.uplink_bits_per_second) limit_pace(fd, *mesh.uplink_bits_per_second);
    sockets_.emplace_back(fd);
  }
}

// Closed connections touch no buffer of an operation that has failed.
GlooRing::~GlooRing() {
  if (context_) context_->closeConnections();
}

// Tags rise at every site alike, so that operations cannot be confused. When an operation fails,
// Gloo's thread still uses its buffers for a moment after this one has been woken. So they are
// kept.
void GlooRing::all_reduce(std::span<float> values) {
  if (values.empty()) return;
  run([&] {
    operation_ = std::make_unique<gloo::AllreduceOptions>(context_);
    operation_->setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    operation_->setInput(values.data(), values.size());
    operation_->setOutput(values.data(), values.size());
    operation_->setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    operation_->setTag(++num_operations_);
    gloo::allreduce(*operation_);
    operation_.reset();
  });
}

// Gloo's operation throws when its sockets end, and run() turns that into failure_. To close Gloo's
// connections would end no wait that is under way.
void GlooRing::abort(const std::string& site, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_.emplace(site, reason);
  for (auto& socket : sockets_) socket.shut_down();
}

SocketBytes GlooRing::socket_bytes() {
  SocketBytes sum;
  const std::lock_guard lock(mutex_);
  for (auto& socket : sockets_) sum += socket.facts().bytes;
  return sum;
}

template <typename Operation>
void GlooRing::run(Operation operation) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) throw PeerError(*failure_);
  }
  try {
    operation();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    // Gloo's exception does not name the connection that broke.
    if (!failure_) failure_.emplace("", fmt::format("the ring of Gloo broke: {}", error.what()));
    throw PeerError(*failure_);
  }
}

}  // namespace farstep::wan
