"""certificates.py - authorities and certificates, made by openssl."""
import subprocess


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


def make_certificate(folder, name, common_name, alternatives):
    """NAME.crt and NAME.key, signed by the CA of the folder."""
    openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key",
            "-out", f"{name}.csr", "-subj", f"/CN={common_name}")
    with open(f"{folder}/ext", "w") as file:
        file.write(f"subjectAltName={alternatives}\n")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", f"{name}.crt", "-days", "2", "-extfile", "ext")


def make_certificates(folder):
    """A CA, and a certificate for localhost signed by it."""
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key",
            "-out", "ca.crt", "-days", "2", "-subj", "/CN=test CA")
    make_certificate(folder, "tls", "localhost", "DNS:localhost,IP:127.0.0.1")
