// Package validate runs two models on the same inputs, in prefill, in chunks
// and token by token, and says by how much their logits differ. Padding stands
// on the left of one row; padded queries are not compared, they carry no
// meaning.
package validate
