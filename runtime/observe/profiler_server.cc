// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/profiler_server.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "io/stores/store_url.h"
#include "ir/core/cancelable_wait.h"
#include "ir/core/str_cat.h"
#include "runtime/observe/profile_directory.h"
#include "runtime/observe/profiler_service.grpc.pb.h"

namespace hlokit::runtime {

namespace {

constexpr int64_t kMaxDurationMs = 600000;
constexpr int kMaxMessageBytes = 1 << 30;

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}
absl::Status FromGrpc(const grpc::Status& status, std::string_view address) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = StrCat(address, ": ", status.error_message());
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), message);
}

// Returns true for names that do not leave their directory.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Replaces the colon of a host's address by `_`, like TensorBoard's plugin.
std::string FileNameOf(std::string host) {
  std::replace(host.begin(), host.end(), ':', '_');
  return host;
}

// Accepts "localhost:9012", "127.0.0.1:9012", "[::1]:9012".
bool IsLoopback(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == address.size()) return false;
  const std::string_view port = address.substr(colon + 1);
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number == 0) return false;
  const std::string_view host = address.substr(0, colon);
  if (host == "localhost" || host == "[::1]") return true;
  return host.substr(0, 4) == "127." &&
         std::all_of(host.begin(), host.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

// Silences gRPC's log: errors are returned as statuses.
void QuietLog() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  QuietLog();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status CheckAddress(const std::string& address) {
  if (IsLoopback(address)) return absl::OkStatus();
  const std::string message =
      StrCat("expected a loopback address and a port, such as localhost:9012, found `", address, "`");
  return absl::InvalidArgumentError(message);
}

}  // namespace

class ProfilerServer::Service final : public tensorflow::ProfilerService::Service {
 public:
  absl::Status Listen(int port, Encoder encoder) {
    QuietLog();
    encoder_ = std::move(encoder);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(), &port_);
    // Two servers must not share a port.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxSendMessageSize(kMaxMessageBytes);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port_ != 0) return absl::OkStatus();
    const std::string message = StrCat("port ", port, " cannot be listened on: is it taken?");
    return absl::UnavailableError(message);
  }
  int port() const { return port_; }

  void Shutdown() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  }

  grpc::Status Profile(grpc::ServerContext* context, const tensorflow::ProfileRequest* request,
                       tensorflow::ProfileResponse* response) override {
    const std::string host = FileNameOf(request->host_name().empty() ? ProfileHostName() : request->host_name());
    const bool save = !request->repository_root().empty();
    if (!IsPlainName(host) || (save && !IsPlainName(request->session_id()))) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                          "session_id and host_name must be plain names of a directory and a file");
    }
    // Who sends a request must not use the credentials of this process.
    if (IsStoreUrl(request->repository_root())) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "repository_root must be a local directory");
    }
    ProfilerOptions options;
    if (request->max_events() > 0) options.max_events = std::min<uint64_t>(options.max_events, request->max_events());
    const uint64_t asked = request->duration_ms() > 0 ? request->duration_ms() : request->opts().duration_ms();
    absl::StatusOr<runtime::Profile> profile = Record(
        options, static_cast<int64_t>(std::min<uint64_t>(asked, kMaxDurationMs)), request->session_id(), context);
    if (!profile.ok()) return ToGrpc(profile.status());
    response->set_empty_trace(profile->events.empty() && profile->executions.empty());
    if (response->empty_trace()) return grpc::Status::OK;
    absl::StatusOr<std::string> bytes = encoder_(*profile);
    if (!bytes.ok()) return ToGrpc(bytes.status());
    if (save) {
      return ToGrpc(WriteProfileDirectory(std::filesystem::path(request->repository_root()) / request->session_id(),
                                          host, *bytes));
    }
    tensorflow::ProfileToolData* data = response->add_tool_data();
    data->set_name(host + ".xplane.pb");
    data->set_data(*std::move(bytes));
    return grpc::Status::OK;
  }

  grpc::Status Terminate(grpc::ServerContext*, const tensorflow::TerminateRequest* request,
                         tensorflow::TerminateResponse*) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (session_ != request->session_id()) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such session");
    terminated_ = true;
    changed_.notify_all();
    return grpc::Status::OK;
  }

  grpc::Status Monitor(grpc::ServerContext* context, const tensorflow::MonitorRequest* request,
                       tensorflow::MonitorResponse* response) override {
    absl::StatusOr<runtime::Profile> profile =
        Record(ProfilerOptions(), static_cast<int64_t>(std::min<uint64_t>(request->duration_ms(), kMaxDurationMs)), "",
               context);
    if (!profile.ok()) return ToGrpc(profile.status());
    std::string text;
    if (request->timestamp()) StrAppend(&text, "time: ", ProfileRunName(profile->start_unix_ns), "\n");
    std::map<std::string, std::pair<int64_t, int64_t>> spans;  // times in nanoseconds
    for (const TraceEvent& e : profile->events) {
      spans[e.name].first += 1;
      spans[e.name].second += e.end_ns - e.start_ns;
    }
    StrAppend(&text, "milliseconds: ", (profile->stop_ns - profile->start_ns) / 1000000,
              "\nexecutions: ", static_cast<int64_t>(profile->executions.size()), "\n");
    for (const auto& [name, sum] : spans) {
      StrAppend(&text, name, ": ", sum.first, " times, ", sum.second / 1000, " us\n");
    }
    response->set_data(std::move(text));
    return grpc::Status::OK;
  }

 private:
  // Records until the duration is over, Terminate is called or the client disconnects.
  absl::StatusOr<runtime::Profile> Record(const ProfilerOptions& options, int64_t duration_ms,
                                          const std::string& session, grpc::ServerContext* context) {
    if (absl::Status s = Profiler::Start(options); !s.ok()) return s;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      session_ = session;
      terminated_ = false;
      CancelableWait(
          changed_, lock, static_cast<double>(duration_ms) * 1e-3, [&] { return closing_ || terminated_; },
          [&] { return context->IsCancelled(); });
      session_.clear();
    }
    return Profiler::Stop();
  }

  Encoder encoder_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string session_;  // the current capture
  bool terminated_ = false;
  bool closing_ = false;
};

ProfilerServer::ProfilerServer() : service_(std::make_unique<Service>()) {}
ProfilerServer::~ProfilerServer() { service_->Shutdown(); }
int ProfilerServer::port() const { return service_->port(); }

absl::StatusOr<std::unique_ptr<ProfilerServer>> ProfilerServer::Start(int port, Encoder encoder) {
  std::unique_ptr<ProfilerServer> server(new ProfilerServer);
  if (absl::Status s = server->service_->Listen(port, std::move(encoder)); !s.ok()) return s;
  return server;
}

absl::StatusOr<std::string> CaptureProfile(const ProfileCaptureOptions& options) {
  if (absl::Status s = CheckAddress(options.address); !s.ok()) return s;
  if (!options.run.empty() && !IsPlainName(options.run)) {
    return absl::InvalidArgumentError("expected a plain directory name as the name of a run");
  }
  const std::unique_ptr<tensorflow::ProfilerService::Stub> stub =
      tensorflow::ProfilerService::NewStub(Connect(options.address));
  const std::string run = !options.run.empty() ? options.run
                                               : ProfileRunName(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                                    std::chrono::system_clock::now().time_since_epoch())
                                                                    .count());
  const std::filesystem::path directory = ProfileRunDirectory(options.logdir, run);
  for (int attempt = 0; attempt < std::max(options.attempts, 1); ++attempt) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(options.duration_ms + options.timeout_ms));
    tensorflow::ProfileRequest request;
    request.set_duration_ms(static_cast<uint64_t>(std::max<int64_t>(options.duration_ms, 0)));
    request.set_session_id(run);
    tensorflow::ProfileResponse response;
    if (grpc::Status s = stub->Profile(&context, request, &response); !s.ok()) return FromGrpc(s, options.address);
    if (response.empty_trace() || response.tool_data_size() == 0) continue;
    // The client writes the file: the server may run in another file system.
    std::string name = response.tool_data(0).name();
    if (!IsPlainName(name)) return absl::DataLossError("the response has no file name");
    constexpr std::string_view kEnd = ".xplane.pb";
    if (name.size() > kEnd.size() && name.substr(name.size() - kEnd.size()) == kEnd) {
      name.resize(name.size() - kEnd.size());
    }
    if (absl::Status s = WriteProfileDirectory(directory, name, response.tool_data(0).data()); !s.ok()) return s;
    return (directory / (name + std::string(kEnd))).string();
  }
  const std::string message = StrCat(options.address, ": no activity in ", std::max(options.attempts, 1), " attempts");
  return absl::NotFoundError(message);
}

absl::StatusOr<std::string> MonitorProcess(const std::string& address, int64_t duration_ms) {
  if (absl::Status s = CheckAddress(address); !s.ok()) return s;
  const std::unique_ptr<tensorflow::ProfilerService::Stub> stub =
      tensorflow::ProfilerService::NewStub(Connect(address));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(duration_ms + 10000));
  tensorflow::MonitorRequest request;
  request.set_duration_ms(static_cast<uint64_t>(std::max<int64_t>(duration_ms, 0)));
  request.set_monitoring_level(1);
  tensorflow::MonitorResponse response;
  if (grpc::Status s = stub->Monitor(&context, request, &response); !s.ok()) return FromGrpc(s, address);
  return response.data();
}

std::string ProfileRunName(int64_t unix_ns) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ns / 1000000000);
  std::tm time{};
  localtime_r(&seconds, &time);
  char text[40];
  std::strftime(text, sizeof(text), "%Y_%m_%d_%H_%M_%S", &time);
  return text;
}

std::string ProfileHostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || !IsPlainName(name)) return "localhost";
  return name;
}

}  // namespace hlokit::runtime
