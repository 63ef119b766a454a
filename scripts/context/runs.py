"""Decoders under ONNX Runtime for the timings of this folder: single tokens with a cache that grows or stands."""
import time

import numpy as np
import onnxruntime as ort

CLOCKS = {"processor": time.process_time, "wall": time.perf_counter}  # the first does not see other work on the machine


def session(path, library, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if library:
        options.register_custom_ops_library(library)
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Decoder:
    """Rows of a batch with padding on the left."""

    def __init__(self, path, library, threads, batch, clock):
        self.session = session(path, library, threads)
        self.batch, self.clock = batch, CLOCKS[clock]
        self.fixed = any(i.name == "cache_length" for i in self.session.get_inputs())
        self.reset()

    def reset(self):
        """Forgets all tokens."""
        self.held = 0
        self.caches = {i.name: ort.OrtValue.ortvalue_from_numpy(np.zeros([self.batch, i.shape[1], i.shape[2] if self.fixed else 0, i.shape[3]], np.float32))
                       for i in self.session.get_inputs() if i.name.startswith("past_key_values.")}

    def step(self, ids, mask, positions):
        """Appends ids [batch, length]; mask is of all tokens so far. Returns the last logits and the seconds."""
        binding = self.session.io_binding()
        binding.bind_cpu_input("input_ids", ids)
        binding.bind_cpu_input("attention_mask", mask)
        binding.bind_cpu_input("position_ids", positions)
        if self.fixed:
            binding.bind_cpu_input("cache_length", np.full(self.batch, self.held, np.int32))
        binding.bind_output("logits")
        for name, value in self.caches.items():
            binding.bind_ortvalue_input(name, value)
            present = name.replace("past_key_values", "present")
            binding.bind_ortvalue_output(present, value) if self.fixed else binding.bind_output(present)
        start = self.clock()
        self.session.run_with_iobinding(binding)
        seconds = self.clock() - start
        outputs = dict(zip(["logits"] + [n.replace("past_key_values", "present") for n in self.caches], binding.get_outputs()))  # as they were bound
        if not self.fixed:
            self.caches = {n: outputs[n.replace("past_key_values", "present")] for n in self.caches}
        self.held += ids.shape[1]
        return outputs["logits"].numpy()[:, -1], seconds

