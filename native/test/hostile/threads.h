// A second thread that helps with the tasks of a call.
#ifndef ROPE_HOSTILE_THREADS_H_
#define ROPE_HOSTILE_THREADS_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

namespace rope::hostile {

class Helper {
 public:
  Helper() : thread_([this] { Serve(); }) {}
  ~Helper() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Calls fn(data, i) for each i < count on this thread and on the helper's.
  void Run(size_t count, void (*fn)(void*, size_t), void* data) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      fn_ = fn, data_ = data, count_ = count, next_ = 0, works_ = true;
    }
    wake_.notify_one();
    Work();
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return !works_; });
  }

 private:
  void Work() {
    for (size_t i = next_++; i < count_; i = next_++) fn_(data_, i);
  }
  void Serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return works_ || ends_; });
      if (ends_) return;
      lock.unlock();
      Work();
      lock.lock();
      works_ = false;
      done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  void (*fn_)(void*, size_t) = nullptr;
  void* data_ = nullptr;
  size_t count_ = 0;
  std::atomic<size_t> next_{0};
  bool works_ = false, ends_ = false;
  std::thread thread_;  // last: it reads the others
};

}  // namespace rope::hostile

#endif  // ROPE_HOSTILE_THREADS_H_
