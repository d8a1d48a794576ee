package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"
)

const nodeName = "localcluster-node"

// apiClient asks the API server the few things that a start needs.
type apiClient struct {
	server string
	token  string
	http   *http.Client
}

func newAPIClient(server string, c *credentials) (*apiClient, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.authority) {
		return nil, errors.New("the cluster's own CA certificate is unreadable")
	}
	return &apiClient{server: server, token: c.adminToken, http: &http.Client{
		Timeout: 10 * time.Second,
		// No Proxy: the user's proxy settings have no say on loopback.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
	}}, nil
}

// request sends body, if there is any, and reads the answer into result, if it is wanted.
func (a *apiClient) request(ctx context.Context, method, path string, body, result any) error {
	var payload bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&payload).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, a.server+path, &payload)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := a.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.500s", method, path, response.Status, content)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(content, result)
}

func (a *apiClient) checkReady(ctx context.Context) error {
	return a.request(ctx, http.MethodGet, "/readyz", nil, nil)
}

// checkServiceAccount: pods are refused in a namespace before its default ServiceAccount exists,
// and its existence shows that kube-controller-manager works.
func (a *apiClient) checkServiceAccount(ctx context.Context) error {
	return a.request(ctx, http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", nil, nil)
}

// createNode registers the node that kwok plays, as a kubelet would do.
func (a *apiClient) createNode(ctx context.Context) error {
	resources := map[string]string{"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"}
	return a.request(ctx, http.MethodPost, "/api/v1/nodes", map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": map[string]any{"name": nodeName, "labels": map[string]string{
			"kubernetes.io/hostname": nodeName,
			"kubernetes.io/os":       "linux",
			"kubernetes.io/arch":     runtime.GOARCH,
		}},
		"status": map[string]any{
			"capacity":    resources,
			"allocatable": resources,
			"addresses": []map[string]string{
				{"type": "InternalIP", "address": loopback},
				{"type": "Hostname", "address": nodeName},
			},
			"nodeInfo": map[string]string{
				"architecture": runtime.GOARCH, "operatingSystem": "linux", "kubeletVersion": "v" + kubeVersion,
				"bootID": "", "containerRuntimeVersion": "kwok", "kernelVersion": "", "kubeProxyVersion": "",
				"machineID": "", "osImage": "simulated", "systemUUID": "",
			},
		},
	}, nil)
}

// checkNode: pods are scheduled to the node once it is Ready and its taints are gone.
func (a *apiClient) checkNode(ctx context.Context) error {
	var node struct {
		Spec   struct{ Taints []struct{ Key string } }
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := a.request(ctx, http.MethodGet, "/api/v1/nodes/"+nodeName, nil, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			if len(node.Spec.Taints) > 0 {
				return fmt.Errorf("taint %s is still there", node.Spec.Taints[0].Key)
			}
			return nil
		}
	}
	return errors.New("not Ready")
}
