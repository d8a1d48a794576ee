// Package v1alpha1 is the vocabulary of upgrade-gate: the custom resources that
// users write and read, the condition types, and the reasons.
//
// It imports apimachinery only, so that anybody can use the types without
// taking on a client.
//
// +kubebuilder:object:generate=true
// +groupName=upgradegate.io
package v1alpha1
