// Package validate runs two models on the same inputs, in prefill, in chunks
// and token by token, and says by how much their logits differ. Padding stands
// on the left of one row; padded queries are not compared, they carry no
// meaning. A patched model with a cache of fixed capacity is also run with rows
// of different length, each at its own place in the cache, against the
// original's padded rows. One with a mask over documents gets one document per
// row, where the mask must change nothing.
package validate
