"""What the installed package does, on a model of testdata: python -m unittest python/test_rope_rewrite.py"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnxruntime
import rope_rewrite

MODELS = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "models"
MODEL = MODELS / "llama__optimum" / "model.onnx"


def logits(path, library):
    options = onnxruntime.SessionOptions()
    if library:
        assert rope_rewrite.register(options) is options
    session = onnxruntime.InferenceSession(str(path), options)
    ids = np.array([[7, 8, 9, 3, 5]], dtype=np.int64)
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(ids.shape[1])[None]}
    for i in session.get_inputs():
        if i.name.startswith("past_key_values."):
            feeds[i.name] = np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32)
    return session.run(["logits"], feeds)[0]


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out.onnx"

    def test_the_output_is_unchanged(self):
        report = rope_rewrite.rewrite(MODEL, self.out)
        self.assertEqual([s["status"] for s in report["layers"]], ["rewritten"] * 2)
        want = logits(MODEL, False)
        for library in (True, False):  # the op, and its fallback
            np.testing.assert_allclose(logits(self.out, library), want, atol=1e-3)

    def test_methods(self):
        yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
        report = rope_rewrite.rewrite(MODEL, self.out, rope_parameters=yarn, positions=["string:shift=32,window=8@0", "string:shift=16,window=8@1"])
        self.assertEqual([e["what"] for e in report["record"]["edits"]], ["scaling", "positions", "positions", "angles"])
        self.assertGreater(np.abs(logits(self.out, True) - logits(MODEL, False)).max(), 1e-2)

    def test_a_folder(self):
        report = rope_rewrite.rewrite(MODELS / "llama__dynamo18", self.out, scaling="linear:factor=2")
        self.assertIn("max_position_embeddings", str(report["files"]))
        self.assertTrue((self.out / "config.json").is_file())

    def test_errors(self):
        with self.assertRaises(rope_rewrite.Error) as caught:
            rope_rewrite.rewrite(MODEL, self.out, scaling="yarm:factor=4")
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("yarm", str(caught.exception))
        with self.assertRaises(rope_rewrite.Error) as caught:
            rope_rewrite.rewrite("missing.onnx")
        self.assertEqual(str(caught.exception), "missing.onnx: no such file")

    def test_what_it_brings(self):
        self.assertTrue(os.path.isfile(rope_rewrite.library_path()))
        if "ROPE_REWRITE" not in os.environ:  # a release's; make build has the library beside the command
            self.assertTrue(rope_rewrite.run("version")["contains_library"])

    def test_a_command_that_is_not_there(self):
        with unittest.mock.patch.dict(os.environ, ROPE_REWRITE="/nothing/rope-rewrite"):
            with self.assertRaisesRegex(FileNotFoundError, "/nothing/rope-rewrite does not exist.* make build"):
                rope_rewrite.command()
            run = subprocess.run([sys.executable, "-m", "rope_rewrite", "version"], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (1, "", 1), run.stderr)


if __name__ == "__main__":
    unittest.main()
