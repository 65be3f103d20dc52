// Calls by CORBA, for `tupelo bench`: a server, and a client that times its calls itself.
//
//   calls server FILE          serves until it is told to stop; writes where it is to FILE
//   calls client FILE...       connects to the servers, then does what it is told by lines on its input:
//
//     exchange REQUEST ANSWER COUNT WARM_UP   calls the first server COUNT times with so many bytes each way;
//                                             answers with one line: the nanoseconds of each call
//     sort COUNT...                           as many numbers of 8 bytes as the sum says follow; each server sorts a
//                                             part, all at once. Answers with a line, the nanoseconds from the first
//                                             request to the last answer, and then the sorted parts
//     stop                                    ends the servers
//
// It says "ready" first. A failure is one line on standard error and the exit code 1.

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "calls.hh"
#include "insertion_sort.h"

namespace {

const CORBA::Octet REQUEST_BYTE = 'q', ANSWER_BYTE = 'r';

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000000000} * now.tv_sec + now.tv_nsec;
}

class Servant : public POA_Bench::Calls {
 public:
  explicit Servant(CORBA::ORB_ptr orb) : orb_(CORBA::ORB::_duplicate(orb)) {}

  Bench::Bytes* exchange(const Bench::Bytes& request, CORBA::ULong request_bytes, CORBA::ULong answer_bytes) override {
    // Compared as a whole, with what is there already: as the servers in Python do, and at that cost.
    static thread_local std::vector<CORBA::Octet> expected;
    if (expected.size() != request_bytes) expected.assign(request_bytes, REQUEST_BYTE);
    if (request.length() != request_bytes || std::memcmp(request.get_buffer(), expected.data(), request_bytes) != 0)
      throw CORBA::BAD_PARAM();
    Bench::Bytes_var answer = new Bench::Bytes;
    answer->length(answer_bytes);
    std::fill_n(answer->get_buffer(), answer_bytes, ANSWER_BYTE);
    return answer._retn();
  }

  Bench::Numbers* sort(const Bench::Numbers& part) override {
    Bench::Numbers_var sorted = new Bench::Numbers(part);
    insertion_sort(reinterpret_cast<int64_t*>(sorted->get_buffer()), sorted->length());
    return sorted._retn();
  }

  void stop() override { orb_->shutdown(false); }

 private:
  CORBA::ORB_var orb_;
};

void serve(CORBA::ORB_ptr orb, const std::string& file) {
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::Servant_var<Servant> servant = new Servant(orb);
  PortableServer::ObjectId_var id = poa->activate_object(servant);
  CORBA::Object_var self = poa->id_to_reference(id);
  CORBA::String_var address = orb->object_to_string(self);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  // Whole or not at all: somebody waits for the file to appear.
  const std::string unfinished = file + ".new";
  std::ofstream(unfinished) << address.in();
  if (std::rename(unfinished.c_str(), file.c_str()) != 0) throw std::runtime_error("can not write " + file);
  orb->run();
}

using Servers = std::vector<Bench::Calls_var>;

Servers connect(CORBA::ORB_ptr orb, const std::vector<std::string>& files) {
  Servers servers;
  for (const std::string& file : files) {
    std::ifstream stream(file);
    const std::string address{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    CORBA::Object_var object = orb->string_to_object(address.c_str());
    Bench::Calls_var server = Bench::Calls::_narrow(object);
    if (CORBA::is_nil(server)) throw std::runtime_error(file + " names no server");
    servers.push_back(server);
  }
  return servers;
}

void exchange(Bench::Calls_ptr server, std::istream& words) {
  CORBA::ULong request_bytes = 0, answer_bytes = 0;
  int count = 0, warm_up = 0;
  if (!(words >> request_bytes >> answer_bytes >> count >> warm_up)) throw std::runtime_error("exchange: four numbers");
  Bench::Bytes request;
  request.length(request_bytes);
  std::fill_n(request.get_buffer(), request_bytes, REQUEST_BYTE);
  std::vector<int64_t> times_ns;
  for (int number = -warm_up; number < count; number++) {
    const int64_t begin_ns = now_ns();
    Bench::Bytes_var answer = server->exchange(request, request_bytes, answer_bytes);
    const int64_t end_ns = now_ns();
    if (answer->length() != answer_bytes) throw std::runtime_error("an answer has another size");
    for (CORBA::ULong at = 0; at < answer_bytes; at++)
      if (answer[at] != ANSWER_BYTE) throw std::runtime_error("an answer has other bytes");
    if (number >= 0) times_ns.push_back(end_ns - begin_ns);
  }
  for (const int64_t time_ns : times_ns) std::cout << time_ns << ' ';
  std::cout << std::endl;
}

void sort(Servers& servers, std::istream& words) {
  std::vector<Bench::Numbers> parts;
  for (CORBA::ULong count = 0; words >> count;) {
    parts.emplace_back();
    parts.back().length(count);
    std::cin.read(reinterpret_cast<char*>(parts.back().get_buffer()), std::streamsize{8} * count);
  }
  if (!std::cin || parts.size() != servers.size()) throw std::runtime_error("sort: a part for each server");
  std::vector<Bench::Numbers_var> sorted(parts.size());
  std::vector<std::string> failures(parts.size());
  std::vector<std::thread> calls;
  const int64_t begin_ns = now_ns();
  for (size_t number = 0; number < parts.size(); number++)
    calls.emplace_back([&, number] {
      try {
        sorted[number] = servers[number]->sort(parts[number]);
      } catch (const CORBA::Exception& error) {
        failures[number] = error._name();
      }
    });
  for (std::thread& call : calls) call.join();
  const int64_t end_ns = now_ns();
  for (const std::string& failure : failures)
    if (!failure.empty()) throw std::runtime_error("sort: " + failure);
  std::cout << end_ns - begin_ns << '\n';
  for (size_t number = 0; number < sorted.size(); number++)
    std::cout.write(reinterpret_cast<const char*>(sorted[number]->get_buffer()),
                    std::streamsize{8} * sorted[number]->length());
  std::cout << std::flush;
}

void obey(Servers servers) {
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "exchange") {
      exchange(servers.at(0), words);
    } else if (verb == "sort") {
      sort(servers, words);
    } else if (verb == "stop") {
      for (Bench::Calls_var& server : servers) server->stop();
      std::cout << "stopped" << std::endl;
    } else {
      throw std::runtime_error("nobody knows " + verb);
    }
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(count, words);
    const std::vector<std::string> told(words + 1, words + count);
    if (told.size() == 2 && told[0] == "server") {
      serve(orb, told[1]);
    } else if (told.size() >= 2 && told[0] == "client") {
      obey(connect(orb, {told.begin() + 1, told.end()}));
    } else {
      throw std::runtime_error("calls server FILE, or calls client FILE...");
    }
    orb->destroy();
    return 0;
  } catch (const CORBA::Exception& error) {
    std::cerr << "calls: " << error._name() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "calls: " << error.what() << std::endl;
  }
  return 1;
}
