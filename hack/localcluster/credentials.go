package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// serviceRange is the address range of Services; the API server's own Service gets its first.
const (
	serviceRange     = "10.0.0.0/24"
	apiServerService = "10.0.0.1"
)

// credentials are the secrets of one run of one cluster: new at each start, gone with its data.
type credentials struct {
	dir        string
	authority  []byte // certificate of the CA, PEM
	adminToken string
}

func (c *credentials) caFile() string         { return filepath.Join(c.dir, "ca.crt") }
func (c *credentials) serverCert() string     { return filepath.Join(c.dir, "server.crt") }
func (c *credentials) serverKey() string      { return filepath.Join(c.dir, "server.key") }
func (c *credentials) etcdCert() string       { return filepath.Join(c.dir, "etcd.crt") }
func (c *credentials) etcdKey() string        { return filepath.Join(c.dir, "etcd.key") }
func (c *credentials) serviceAccount() string { return filepath.Join(c.dir, "service-accounts.key") }
func (c *credentials) tokenFile() string      { return filepath.Join(c.dir, "tokens.csv") }

// createCredentials writes all secrets to dir, readable by this user only. etcd gets a certificate
// too and asks its clients for it: any user of this machine can reach loopback, and who can reach
// an open etcd can do all that a cluster-admin can.
func createCredentials(dir string) (*credentials, error) {
	c := &credentials{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	c.authority = encodeCertificate(ca.certificate.Raw)
	if err := os.WriteFile(c.caFile(), c.authority, 0o600); err != nil {
		return nil, err
	}
	if err := ca.issue("kube-apiserver", c.serverCert(), c.serverKey()); err != nil {
		return nil, err
	}
	if err := ca.issue("etcd", c.etcdCert(), c.etcdKey()); err != nil {
		return nil, err
	}
	signer, err := newKey()
	if err != nil {
		return nil, err
	}
	if err := writeKey(c.serviceAccount(), signer); err != nil {
		return nil, err
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	c.adminToken = hex.EncodeToString(secret)
	line := fmt.Sprintf("%s,localcluster-admin,localcluster-admin,system:masters\n", c.adminToken)
	return c, os.WriteFile(c.tokenFile(), []byte(line), 0o600)
}

// authority signs the certificates of one cluster; its key is never written to disk.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := certificateTemplate("localcluster-ca")
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return &authority{certificate: certificate, key: key}, err
}

// issue writes a certificate, good for a server on loopback and for its clients, and its key.
func (a *authority) issue(commonName, certFile, keyFile string) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template, err := certificateTemplate(commonName)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{net.ParseIP(loopback), net.ParseIP(apiServerService)}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(certFile, encodeCertificate(raw), 0o600); err != nil {
		return err
	}
	return writeKey(keyFile, key)
}

func certificateTemplate(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    time.Now().Add(-time.Hour), // a clock set back must not end a cluster
		NotAfter:     time.Now().AddDate(1, 0, 0),
	}, nil
}

// newKey makes an elliptic curve key: an RSA key would take longer than all the rest here.
func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600)
}

func encodeCertificate(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}
